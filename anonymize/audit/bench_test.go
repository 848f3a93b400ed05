package audit_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tailgate/anonymize/audit"
)

// BenchmarkScan is the search for 100 canaries in 64 MiB of log lines, against bytes.Contains for each of a
// canary's plainest spellings. The audit knows about twice as many.
func BenchmarkScan(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var text bytes.Buffer
	for text.Len() < 64<<20 {
		fmt.Fprintf(&text, `{"at":%d,"input_length":%d,"hash_ids":[%d,%d],"session":"s_%013x"}`+"\n", r.Int64N(1e9), r.IntN(1e5),
			r.Int64(), r.Int64(), r.Int64())
	}
	path := filepath.Join(b.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
	var canaries [][]byte
	for i := range 100 {
		canaries = append(canaries, fmt.Appendf(nil, "Canary%04dWren%08x", i, uint32(i)*2654435761))
	}
	b.Run("audit", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			report, err := audit.Path(b.Context(), path, audit.Options{Canaries: canaries})
			if err != nil || report.Found > 0 {
				b.Fatal(report, err)
			}
		}
	})
	b.Run("contains", func(b *testing.B) {
		part := text.Bytes()[:1<<20] // it is slow
		b.SetBytes(int64(len(part)))
		for b.Loop() {
			for _, c := range canaries {
				for _, s := range plainest(c) {
					if bytes.Contains(part, s) {
						b.Fatal("found")
					}
				}
			}
		}
	})
}

func plainest(c []byte) [][]byte {
	s := string(c)
	out := [][]byte{c, bytes.ToLower(c), bytes.ToUpper(c), c[:12], []byte(url.QueryEscape(s)), []byte(hex.EncodeToString(c)),
		[]byte(strings.Join(strings.Split(s, ""), "\x00"))}
	for pad := range 3 {
		enc := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("p", pad) + s))
		out = append(out, []byte(enc[4:len(enc)-4]))
	}
	return out
}
