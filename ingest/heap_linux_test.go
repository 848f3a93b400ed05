package ingest_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/internal/testshared"
)

const envHeap = "TAILGATE_TEST_HEAP"

// TestTextIsClearedFromMemory looks through the memory of its own process for the prompts of an ingest that has
// ended. Go promises nothing about copies: a few may be left.
func TestTextIsClearedFromMemory(t *testing.T) {
	testshared.NotUnderRace(t, "the race detector makes sync.Pool drop buffers, which then grow anew all the time")
	if os.Getenv(envHeap) == "" { // a process of its own, that uses no memory twice: what is left stays to be seen
		cmd := child(t, envHeap+"=1")
		cmd.Args, cmd.Env = append(cmd.Args, "-test.v"), append(cmd.Env, "GOGC=off")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("PASS: TestTextIsCleared")) {
			t.Errorf("%v", err)
		}
		t.Logf("%s", out)
		return
	}
	const records = 2000
	mark := []byte("HeapMark") // then a dash and six digits, nowhere else in the binary
	path := filepath.Join(t.TempDir(), "logs.jsonl")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	line := append(litellm(0, fields{"messages": string(mark) + "-999999 and some words behind it"}), '\n')
	digits := line[bytes.Index(line, mark)+len(mark)+1:][:6] // changed in place, so that making them leaves nothing
	for i := range records {
		copy(digits, fmt.Sprintf("%06d", i))
		if _, err := file.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := marksInMemory(t, mark); n < records { // the control
		t.Errorf("the search found %d of %d prompts while they were in memory", n, records)
	}
	clear(data)
	before := marksInMemory(t, mark) // garbage of the making
	o := options(filepath.Join(t.TempDir(), "lake"))
	o.Anonymizer = hasher(t) // the fake one of other tests keeps copies
	run(t, openFiles(t, path), o)
	after := marksInMemory(t, mark)
	t.Logf("prompts in memory: %d of %d before the run, %d after it", before, records, after)
	if after > before+records/100 {
		t.Errorf("the run left %d of %d prompts in memory, there were %d before it", after, records, before)
	}
}

func hasher(t *testing.T) *anonymize.Hasher {
	t.Helper()
	ring, err := anonymize.InitKeyDir(filepath.Join(t.TempDir(), "keys"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ring.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	h, err := anonymize.NewHasher(keys, anonymize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// marksInMemory counts the different numbers behind mark in the writable memory of this process.
func marksInMemory(t *testing.T, mark []byte) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Skip(err)
	}
	defer mem.Close()
	pattern := regexp.MustCompile(regexp.QuoteMeta(string(mark)) + `-(\d{6})`)
	seen := map[string]bool{}
	buf := make([]byte, 1<<20)
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 1<<30 {
			continue // larger ones are shadows of the race detector
		}
		for at := from; at < to; at += uint64(len(buf)) - 32 {
			n, err := mem.ReadAt(buf[:min(uint64(len(buf)), to-at)], int64(at))
			if err != nil && err != io.EOF && n == 0 {
				break
			}
			for _, m := range pattern.FindAllSubmatch(buf[:n], -1) {
				seen[string(m[1])] = true
			}
		}
	}
	clear(buf)
	return len(seen)
}
