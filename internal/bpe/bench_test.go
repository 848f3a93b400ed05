package bpe

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"tailgate/internal/rng"
	"tailgate/internal/textcorpus"
)

// benchBytes is how much text of each kind a pass tokenizes.
const benchBytes = 3 << 20

func benchDocuments(b *testing.B, kind string) (docs [][]byte, size int) {
	b.Helper()
	o200k, err := loadO200k()
	if err != nil {
		b.Fatal(err)
	}
	docs, err = textcorpus.New(1, vocabularyWords(o200k)).Documents(kind, benchBytes)
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range docs {
		size += len(d)
	}
	return docs, size
}

func vocabularyWords(e *Encoding) [][]byte {
	words := make([][]byte, len(e.vocab.offsets)-1)
	for id := range words {
		words[id] = e.vocab.token(uint32(id))
	}
	return words
}

// peer is another tokenizer in a process of its own, timed pass by pass in step with ours.
type peer struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// startPeer returns nil, with the reason logged, when there is no Python that has the tokenizer.
func startPeer(b *testing.B, name string, docs [][]byte) *peer {
	b.Helper()
	python, err := peerPython()
	if err != nil {
		b.Logf("no ratio: %v", err)
		return nil
	}
	cache := b.TempDir()
	for file, sum := range map[string]string{ // as tiktoken's cache names them, see tools/tokens
		"o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790", "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
	} {
		data, err := assets.Assets.ReadFile(file + ".tiktoken")
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cache, sum), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	cmd := exec.Command(python, "../../tools/checks/tokenizer_speed.py", name)
	cmd.Env = append(os.Environ(), "TIKTOKEN_CACHE_DIR="+cache, "RAYON_NUM_THREADS=1", "TOKENIZERS_PARALLELISM=false")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	w := bufio.NewWriter(in)
	for _, d := range docs {
		w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(d))))
		w.Write(d)
	}
	w.Write([]byte{0xff, 0xff, 0xff, 0xff})
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return &peer{in, bufio.NewReader(out)}
}

// peerPython finds a Python with the peers: TAILGATE_PEERS_PYTHON, or the environment that tools/checks/tokenizers makes.
func peerPython() (string, error) {
	if p := os.Getenv("TAILGATE_PEERS_PYTHON"); p != "" {
		return p, nil
	}
	home, _ := os.UserHomeDir()
	cache := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	found, _ := filepath.Glob(filepath.Join(cache, "tailgate-ci", "tokenizers-*", "bin", "python"))
	if len(found) == 0 {
		return "", fmt.Errorf("no Python with the peers; run tools/checks/tokenizers, or set TAILGATE_PEERS_PYTHON")
	}
	return found[len(found)-1], nil
}

// pass makes one pass and returns its tokens.
func (p *peer) pass(b *testing.B, best best) (tokens int) {
	b.Helper()
	fmt.Fprintln(p.in)
	line, err := p.out.ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != len(best)+1 {
		b.Fatalf("the peer gives %d figures for %d documents: %v", len(fields), len(best), err)
	}
	for i := range best {
		seconds, err := strconv.ParseFloat(fields[i+1], 64)
		if err != nil {
			b.Fatal(err)
		}
		best[i] = min(best[i], time.Duration(seconds*float64(time.Second)))
	}
	if tokens, err = strconv.Atoi(fields[0]); err != nil {
		b.Fatal(err)
	}
	return tokens
}

// best is the shortest time of each document: on a busy machine no pass as a whole goes undisturbed.
type best []time.Duration

func newBest(docs [][]byte) best {
	b := make(best, len(docs))
	for i := range b {
		b[i] = time.Hour
	}
	return b
}

func (b best) sum() (sum time.Duration) {
	for _, d := range b {
		sum += d
	}
	return sum
}

const (
	leastRounds = 5 // how often each document is timed at least
	leastRatios = 9 // how many ratios a median is taken of at least
)

// BenchmarkTiktoken times passes over text of each kind against Python's tiktoken on one thread: passes that begin with
// caches emptied, warm ones, theirs, in turn. The shortest time of each document counts.
func BenchmarkTiktoken(b *testing.B) {
	kinds := map[string][]string{"o200k": append([]string{textcorpus.Mix}, textcorpus.Kinds()...), "cl100k": {textcorpus.Mix}}
	for _, name := range []string{"o200k", "cl100k"} {
		for _, kind := range kinds[name] {
			b.Run(name+"/"+kind, func(b *testing.B) {
				e, err := encodings[name]()
				if err != nil {
					b.Fatal(err)
				}
				docs, size := benchDocuments(b, kind)
				againstPeer(b, e, docs, size, "tiktoken:"+name+"_base", "tiktoken")
			})
		}
	}
}

func againstPeer(b *testing.B, e *Encoding, docs [][]byte, size int, peerName, short string) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := startPeer(b, peerName, docs)
	enc := e.NewEncoder()
	ids := make([]uint32, 0, size)
	first, warm, theirs := newBest(docs), newBest(docs), newBest(docs)
	pass := func(best best) {
		ids = ids[:0]
		for i, d := range docs {
			began := threadTime()
			ids = enc.Append(ids, d)
			best[i] = min(best[i], threadTime()-began)
		}
	}
	b.SetBytes(int64(size))
	round := func() {
		for range 2 {
			enc.Clear()
			pass(first)
			pass(warm)
		}
		if p != nil {
			if tokens := p.pass(b, theirs); tokens != len(ids) {
				b.Fatalf("the peer has %d tokens, we have %d", tokens, len(ids))
			}
		}
	}
	for b.Loop() {
		round()
	}
	for range leastRounds - b.N {
		round()
	}
	rate := func(t best) float64 { return float64(size) / 1e6 / t.sum().Seconds() }
	b.ReportMetric(rate(first), "first_MB/s")
	b.ReportMetric(rate(warm), "warm_MB/s")
	b.ReportMetric(float64(size)/float64(len(ids)), "B/token")
	if p != nil {
		b.ReportMetric(rate(theirs), strings.ToLower(short)+"_MB/s")
		b.ReportMetric(rate(first)/rate(theirs), "x_vs_"+short)
		b.ReportMetric(rate(warm)/rate(theirs), "warm_x_vs_"+short)
	}
}

// BenchmarkGiant tokenizes a single piece that no cache helps, of 512 KB and of twice that. The ratio is that of their
// speeds: 1 where time grows with length. Each round times the short piece twice at a stretch and the whole next, so that
// both are as exposed to whatever else the machine does, and the median of the rounds counts.
func BenchmarkGiant(b *testing.B) {
	e, err := loadO200k()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, alphabet string }{
		{"letter", "a"}, {"letters", "etaoinshrdlu"}, {"han", "的一是不了人我在有他"}, {"rule", "="}, {"emoji", "😀"}, {"blank", " "}, {"dna", "ACGT"},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			letters, r := []rune(c.alphabet), rng.New(3, c.name)
			var long []byte
			for len(long) < 1<<20 {
				long = utf8.AppendRune(long, letters[r.IntN(len(letters))])
			}
			half := long[:len(long)/2]
			for !utf8.RuneStart(long[len(half)]) {
				half = half[:len(half)-1]
			}
			enc, ids := e.NewEncoder(), make([]uint32, 0, 1<<20)
			took := func(texts ...[]byte) time.Duration {
				began := threadTime()
				for _, text := range texts {
					ids = enc.Append(ids[:0], text)
				}
				return threadTime() - began
			}
			took(long) // whose memory is its own from then on
			whole, ratios := time.Hour, []float64{}
			round := func() {
				short, once := took(half, half), took(long)
				whole, ratios = min(whole, once), append(ratios, short.Seconds()/once.Seconds())
			}
			b.SetBytes(int64(len(long)))
			for b.Loop() {
				round()
			}
			for len(ratios) < leastRatios {
				round()
			}
			slices.Sort(ratios)
			b.ReportMetric(float64(len(long))/1e6/whole.Seconds(), "best_MB/s")
			b.ReportMetric(ratios[len(ratios)/2], "x_vs_half_the_length")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct {
		name string
		load func() (*Encoding, error)
	}{{"o200k", O200k}, {"cl100k", Cl100k}} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start, best := time.Hour, time.Hour // until it tokenizes, and until it has its tables
			for b.Loop() {
				began := threadTime()
				e, err := c.load()
				if err != nil {
					b.Fatal(err)
				}
				start = min(start, threadTime()-began)
				e.tables()
				best = min(best, threadTime()-began)
			}
			b.ReportMetric(start.Seconds()*1000, "start_ms")
			b.ReportMetric(best.Seconds()*1000, "best_ms")
		})
	}
}
