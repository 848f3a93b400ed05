package ingest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tailgate/ingest"
)

// BenchmarkDecode measures each decoder on its fixture, beside encoding/json into maps on the same bytes.
func BenchmarkDecode(b *testing.B) {
	for _, f := range fixtures {
		data, err := os.ReadFile(filepath.Join("testdata", f.file))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(f.file+"/decode", func(b *testing.B) {
			decode := ingest.DecodeCount(f.format)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if decode(data) == 0 {
					b.Fatal("nothing")
				}
			}
		})
		if strings.HasSuffix(f.file, ".binpb") {
			continue
		}
		b.Run(f.file+"/maps", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				for dec := json.NewDecoder(strings.NewReader(string(data))); dec.More(); {
					var v any
					if err := dec.Decode(&v); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
