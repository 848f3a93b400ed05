// Command tokens draws documents from a seed, tokenizes them, and writes both to stdout for an oracle to compare:
//
//	tokens -encoding o200k -bytes 10000000 | python tools/checks/tokenizer_oracle.py …
//
// A frame is: length of the kind's name (1 byte), the name, length of the document (u32le), the document,
// number of ids (u32le), SHA-256 of the ids as u32le (first 8 bytes). `tokens -vocabulary DIR` writes the embedded
// vocabularies as tiktoken's own cache has them.
package main

import (
	"bufio"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"tailgate/internal/bpe"
	"tailgate/internal/rng"
	"tailgate/internal/textcorpus"
)

func main() {
	encoding := flag.String("encoding", "o200k", "o200k, cl100k, or the path of a tokenizer.json")
	size := flag.Int("bytes", 10_000_000, "bytes to draw, over all kinds")
	seed := flag.Uint64("seed", 1, "seed of the documents")
	kinds := flag.String("kinds", strings.Join(append(textcorpus.Kinds(), textcorpus.Mix), ","), "kinds of documents")
	sources := flag.String("sources", "", "folders whose source files are added; those that are not there are left out")
	sourceBytes := flag.Int("source-bytes", 1_000_000, "bytes of source files, over all folders")
	vocabulary := flag.String("vocabulary", "", "write the embedded vocabularies into this folder and end")
	special := flag.Bool("special", false, "put texts of special tokens into the documents, and read them as their ids")
	flag.Parse()
	var err error
	if *vocabulary != "" {
		err = writeVocabularies(*vocabulary)
	} else {
		err = run(*encoding, *seed, *size, strings.Split(*kinds, ","), filepath.SplitList(*sources), *sourceBytes, *special)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

func run(encoding string, seed uint64, size int, kinds, sources []string, sourceBytes int, special bool) error {
	enc, err := load(encoding)
	if err != nil {
		return err
	}
	out := &frames{w: bufio.NewWriterSize(os.Stdout, 1<<20), enc: enc.NewEncoder()}
	if special {
		out.specials, out.random = enc.Specials(), rng.New(seed, "specials")
	}
	words, err := tokens()
	if err != nil {
		return err
	}
	corpus := textcorpus.New(seed, words)
	var doc []byte
	for _, kind := range kinds {
		for total := 0; total < size/len(kinds); total += len(doc) {
			if doc, err = corpus.Document(doc[:0], kind); err != nil {
				return err
			}
			if err := out.write(kind, doc); err != nil {
				return err
			}
		}
	}
	for _, dir := range sources {
		if err := out.writeSources(dir, sourceBytes/len(sources)); err != nil {
			return err
		}
	}
	return out.w.Flush()
}

func load(name string) (*bpe.Encoding, error) {
	switch name {
	case "o200k":
		return bpe.O200k()
	case "cl100k":
		return bpe.Cl100k()
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening a tokenizer.json: %w", err)
	}
	defer file.Close()
	return bpe.ParseHF(file)
}

// tokens lists the vocabulary that the corpus draws words from, the same one for every encoding.
func tokens() ([][]byte, error) {
	enc, err := bpe.O200k()
	if err != nil {
		return nil, err
	}
	return enc.Tokens(), nil
}

// frames writes documents with their ids.
type frames struct {
	w   *bufio.Writer
	enc *bpe.Encoder
	ids []uint32
	raw []byte

	specials []string // put into each document, where there are any
	random   *rand.Rand
}

func (f *frames) write(kind string, doc []byte) error {
	if len(f.specials) > 0 {
		doc = f.withSpecials(doc)
		f.ids = f.enc.AppendSpecial(f.ids[:0], doc)
	} else {
		f.ids = f.enc.Append(f.ids[:0], doc)
	}
	f.raw = f.raw[:0]
	for _, id := range f.ids {
		f.raw = binary.LittleEndian.AppendUint32(f.raw, id)
	}
	sum := sha256.Sum256(f.raw)
	head := append([]byte{byte(len(kind))}, kind...)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(doc)))
	tail := binary.LittleEndian.AppendUint32(nil, uint32(len(f.ids)))
	for _, part := range [][]byte{head, doc, tail, sum[:8]} {
		if _, err := f.w.Write(part); err != nil {
			return fmt.Errorf("writing a document: %w", err)
		}
	}
	return nil
}

// withSpecials puts texts of special tokens, some of them cut, at random places of a copy of doc.
func (f *frames) withSpecials(doc []byte) []byte {
	var out []byte
	for len(doc) > 0 {
		n := min(len(doc), f.random.IntN(200))
		for n < len(doc) && doc[n]&0xC0 == 0x80 {
			n++
		}
		out, doc = append(out, doc[:n]...), doc[n:]
		for range 1 + f.random.IntN(2) {
			s := f.specials[f.random.IntN(len(f.specials))]
			if f.random.IntN(4) == 0 {
				s = strings.TrimSuffix(s, ">")
			}
			out = append(out, s...)
		}
	}
	return out
}

// writeSources adds source files under dir, whole up to 64 KB, in the order of their names.
func (f *frames) writeSources(dir string, size int) error {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	extensions := []string{".go", ".py", ".js", ".c", ".h", ".s", ".md", ".txt", ".json", ".html", ".vim", ".po", ".utf-8"}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !slices.Contains(extensions, filepath.Ext(path)) {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		doc, err := io.ReadAll(io.LimitReader(file, 64<<10))
		if err != nil {
			return err
		}
		if size -= len(doc); size < 0 {
			return fs.SkipAll
		}
		return f.write("src"+filepath.Ext(path), doc)
	})
	if err != nil {
		return fmt.Errorf("reading sources: %w", err)
	}
	return nil
}

// writeVocabularies names each file by the SHA-1 of the address that tiktoken fetches it from.
func writeVocabularies(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the vocabularies: %w", err)
	}
	for _, name := range []string{"o200k_base", "cl100k_base"} {
		data, err := assets.Assets.ReadFile(name + ".tiktoken")
		if err != nil {
			return fmt.Errorf("reading the embedded vocabulary: %w", err)
		}
		sum := sha1.Sum([]byte("https://openaipublic.blob.core.windows.net/encodings/" + name + ".tiktoken"))
		if err := os.WriteFile(filepath.Join(dir, hex.EncodeToString(sum[:])), data, 0o644); err != nil {
			return fmt.Errorf("writing a vocabulary: %w", err)
		}
	}
	return nil
}
