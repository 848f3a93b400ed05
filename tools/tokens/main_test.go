package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"tailgate/internal/bpe"
	"tailgate/internal/rng"
)

// TestOracles compares at least 100 MB of documents of each encoding with Python's tiktoken.
func TestOracles(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("runs with TAILGATE_PROVE=full; CI runs a tenth of it")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	cmd := exec.Command("../checks/tokenizers", "110", "7")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// TestHFOracles compares 110 MB of documents of each model family with Hugging Face's library.
func TestHFOracles(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("runs with TAILGATE_PROVE=full; CI runs a tenth of it")
	}
	for _, program := range []string{"python3", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s", program)
		}
	}
	cmd := exec.Command("../checks/tokenizers_hf", "110", "7")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

func TestFrames(t *testing.T) {
	enc, err := bpe.Cl100k()
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	f := &frames{w: bufio.NewWriter(&buf), enc: enc.NewEncoder()}
	if err := f.write("en", []byte("Hello world!")); err != nil {
		t.Fatal(err)
	}
	if err := f.w.Flush(); err != nil {
		t.Fatal(err)
	}
	b := buf.Bytes()
	if string(b[:3]) != "\x02en" || binary.LittleEndian.Uint32(b[3:]) != 12 || string(b[7:19]) != "Hello world!" {
		t.Errorf("the frame begins %q", b[:19])
	}
	if n := binary.LittleEndian.Uint32(b[19:]); n != 3 || len(b) != 31 {
		t.Errorf("%d ids, frame of %d bytes", n, len(b))
	}
}

func TestSpecialsAreSprinkled(t *testing.T) {
	f := &frames{specials: []string{"<|a|>", "<|b|>"}, random: rng.New(1, "test")}
	doc := []byte(strings.Repeat("the café ", 100))
	out := string(f.withSpecials(doc))
	if !utf8.ValidString(out) || !strings.Contains(out, "<|a|>") || !strings.Contains(out, "<|b|>") {
		t.Errorf("got %q", out)
	}
	for _, s := range []string{"<|a|>", "<|b|>", "<|a|", "<|b|"} {
		out = strings.ReplaceAll(out, s, "")
	}
	if out != string(doc) {
		t.Error("the document has changed")
	}
}

func TestVocabulariesAreNamedAsTiktokenCachesThem(t *testing.T) {
	dir := t.TempDir()
	if err := writeVocabularies(dir); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"fb374d419588a4632f3f557e76b4b70aebbca790": 3613922, "9b5ad71b2ce5302211f9c61530b329a4922fc6a4": 1681126} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != size {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownEncodingIsRefused(t *testing.T) {
	if _, err := load("p50k"); err == nil {
		t.Error("p50k was loaded")
	}
}
