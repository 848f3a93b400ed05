package bpe

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"tailgate/internal/textcorpus"
)

// hfModels are the folders that tools/checks/hf_models fetches.
var hfModels = []string{"llama3", "qwen3", "deepseek3"}

// readModel reads the tokenizer.json of a model family, or skips.
func readModel(t testing.TB, name string) (data []byte, path string) {
	t.Helper()
	home, _ := os.UserHomeDir()
	dir := cmp.Or(os.Getenv("TAILGATE_HF_MODELS"), filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "tailgate-ci", "models"))
	path = filepath.Join(dir, name, "tokenizer.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("no tokenizer.json of %s: run tools/checks/hf_models, or set TAILGATE_HF_MODELS", name)
	}
	return data, path
}

// BenchmarkHuggingFace times a pass over 1 MB of text against the library tokenizers on one thread, pass by pass.
func BenchmarkHuggingFace(b *testing.B) {
	for _, name := range hfModels {
		for _, kind := range []string{textcorpus.Mix, textcorpus.English, textcorpus.Code, textcorpus.Chinese, textcorpus.Japanese, textcorpus.Fuzz} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				data, path := readModel(b, name)
				e, err := ParseHF(bytes.NewReader(data))
				if err != nil {
					b.Fatal(err)
				}
				docs, size := benchDocuments(b, kind)
				againstPeer(b, e, docs, size, "hf:"+path, "hf")
			})
		}
	}
}

// BenchmarkLoadHF reports how long loading a tokenizer.json takes, and the heap that stays.
func BenchmarkLoadHF(b *testing.B) {
	for _, name := range hfModels {
		b.Run(name, func(b *testing.B) {
			data, _ := readModel(b, name)
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
