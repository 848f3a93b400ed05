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

// The vocabularies of real models: each of their special tokens is one id both ways, and every token decodes.
func TestHFModels(t *testing.T) {
	for _, name := range hfModels {
		t.Run(name, func(t *testing.T) {
			data, _ := readModel(t, name)
			e, err := ParseHF(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			enc := e.NewEncoder()
			for _, s := range e.Specials() {
				id, _ := e.Special(s)
				if got := fmt.Sprint(enc.AppendSpecial(nil, []byte(s))); got != fmt.Sprint([]uint32{id}) {
					t.Errorf("special token %d is read as %s", id, got)
				}
			}
			if e.greedy == nil {
				t.Error("merged by rank")
			} else if wild := e.greedy.wilds; (wild > 0) != (name == "llama3") {
				t.Errorf("%d tokens are not made of lower ids (T1: Llama 3 alone has some)", wild)
			} else {
				t.Logf("%d tokens are not made of lower ids", wild)
			}
			if e.Size() < 128_000 {
				t.Errorf("only %d ids", e.Size())
			}
		})
	}
}
