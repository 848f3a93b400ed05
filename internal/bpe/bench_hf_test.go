package bpe

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"tailgate/internal/textcorpus"
)

// hfModels are the folders that tools/checks/hf_models fetches.
var hfModels = []string{"llama3", "qwen3", "deepseek3"}

// readModel reads the tokenizer.json of a model family.
func readModel(name string) (data []byte, path string, err error) {
	home, _ := os.UserHomeDir()
	dir := cmp.Or(os.Getenv("TAILGATE_HF_MODELS"), filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "tailgate-ci", "models"))
	path = filepath.Join(dir, name, "tokenizer.json")
	if data, err = os.ReadFile(path); err != nil {
		err = fmt.Errorf("no tokenizer.json of %s: run tools/checks/tokenizers_hf 0, or set TAILGATE_HF_MODELS", name)
	}
	return data, path, err
}

// BenchmarkHuggingFace times a pass over 1 MB of text against the library tokenizers on one thread, pass by pass;
// under TAILGATE_PROVE=full also kinds of text apart.
func BenchmarkHuggingFace(b *testing.B) {
	kinds := []string{textcorpus.Mix}
	if os.Getenv("TAILGATE_PROVE") == "full" {
		kinds = append(kinds, textcorpus.English, textcorpus.Chinese)
	}
	for _, name := range hfModels {
		for _, kind := range kinds {
			b.Run(name+"/"+kind, func(b *testing.B) {
				data, path, err := readModel(name)
				if err != nil {
					skipRow(b, err)
					return
				}
				e, err := ParseHF(bytes.NewReader(data))
				if err != nil {
					b.Fatal(err)
				}
				docs, size := benchDocuments(b, kind)
				againstPeer(b, e, docs, size, "hf:"+path, "hf_tokenizers")
			})
		}
	}
}

// skipRow leaves a line without ratio, so that the table says skipped and not missing.
func skipRow(b *testing.B, why error) {
	b.Logf("no ratio: %v", why)
	for b.Loop() {
	}
}

// BenchmarkLoadHF reports how long loading a tokenizer.json takes, and the heap that stays.
func BenchmarkLoadHF(b *testing.B) {
	for _, name := range hfModels {
		b.Run(name, func(b *testing.B) {
			data, _, err := readModel(name)
			if err != nil {
				skipRow(b, err)
				return
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			best := 1e9
			var e *Encoding
			for b.Loop() {
				began := threadTime()
				var err error
				if e, err = ParseHF(bytes.NewReader(data)); err != nil {
					b.Fatal(err)
				}
				best = min(best, (threadTime() - began).Seconds())
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(best*1000, "best_ms")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "heap_MB")
			runtime.KeepAlive(e)
			runtime.KeepAlive(data)
		})
	}
}
