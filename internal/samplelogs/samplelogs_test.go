package samplelogs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"testing"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/samplelogs"
)

// golden is the digest of five minutes: a change here changes the sample logs of everybody.
const golden = "e00362b38f4560bca846c159f3fc62ea83f9d218700b9bce247e5cdf291375e5"

func digest(t *testing.T, o samplelogs.Options) string {
	t.Helper()
	h := sha256.New()
	err := samplelogs.Generate(o, func(r samplelogs.Record) error {
		io.WriteString(h, r.Topic+"\n"+string(r.Key)+"\n"+r.At.Format(time.RFC3339Nano)+"\n")
		h.Write(r.Value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestEqualOptionsGiveEqualBytes(t *testing.T) {
	o := samplelogs.Options{Seed: 7, Duration: 5 * time.Minute}
	first := digest(t, o)
	if again := digest(t, o); again != first {
		t.Error("two runs differ")
	}
	// Elsewhere the compiler may fuse multiply and add, which moves a draw in its last bit.
	if runtime.GOARCH == "amd64" && first != golden {
		t.Errorf("digest %s, want %s", first, golden)
	}
	o.Seed = 8
	if digest(t, o) == first {
		t.Error("another seed gave the same logs")
	}
}

// sample is what two hours at the default rate hold.
type sample struct {
	requests []logged // without copies
	bytes    int
	records  int
	copies   int          // records that came before, byte for byte
	text     bytes.Buffer // the first of it
}

func readSample(t *testing.T) *sample {
	t.Helper()
	s := new(sample)
	seen := make(map[[32]byte]bool)
	var last time.Time
	err := samplelogs.Generate(samplelogs.Options{Seed: 1}, func(r samplelogs.Record) error {
		s.records++
		s.bytes += len(r.Value) + 1
		if s.text.Len() < 3<<20 {
			s.text.Write(r.Value)
		}
		if r.At.Before(last) {
			t.Errorf("a record of %v comes after one of %v", r.At, last)
		}
		last = r.At
		sum := sha256.Sum256(r.Value)
		if seen[sum] {
			s.copies++
			return nil
		}
		seen[sum] = true
		for _, q := range readRecord(t, r) {
			if late := r.At.Sub(q.end); late < -time.Microsecond || late > 2*time.Second {
				t.Errorf("a request that ended at %v was logged at %v", q.end, r.At)
			}
			s.requests = append(s.requests, q)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTraffic(t *testing.T) {
	s := readSample(t)
	t.Run("volume", s.checkVolume)
	t.Run("tenants", s.checkTenants)
	t.Run("conversations", s.checkConversations)
	t.Run("requests", s.checkRequests)
	t.Run("lengths", s.checkLengths)
	t.Run("bursts", s.checkBursts)
	t.Run("names", s.checkNames)
}

func within(t *testing.T, what string, got, lo, hi float64) {
	t.Helper()
	if got < lo || got > hi || math.IsNaN(got) {
		t.Errorf("%s = %.4g, want %.4g to %.4g", what, got, lo, hi)
	}
}

func (s *sample) checkVolume(t *testing.T) {
	within(t, "requests per second", float64(len(s.requests))/7200, 0.9, 1.1)
	within(t, "megabytes", float64(s.bytes)/1e6, 35, 62)
	within(t, "share of copies", float64(s.copies)/float64(s.records), 0.001, 0.006)
}

func (s *sample) checkTenants(t *testing.T) {
	requests, sessions := map[string]int{}, map[string]map[string]bool{}
	topics := map[string]string{}
	for _, q := range s.requests {
		if q.probe {
			continue
		}
		if was, ok := topics[q.tenant]; ok && was != q.topic {
			t.Errorf("tenant %s is in both logs", q.tenant)
		}
		topics[q.tenant] = q.topic
		requests[q.tenant]++
		if sessions[q.tenant] == nil {
			sessions[q.tenant] = map[string]bool{}
		}
		sessions[q.tenant][q.session] = true
	}
	var shares []float64
	for name, n := range requests {
		within(t, "sessions per hour of "+name, float64(len(sessions[name]))/2, 20, 1e9)
		shares = append(shares, float64(n)/float64(len(s.requests)))
	}
	sort.Float64s(shares)
	within(t, "tenants", float64(len(shares)), 6, 1e9)
	within(t, "largest share", shares[len(shares)-1], 0.28, 0.45)
	within(t, "smallest share", shares[0], 0.03, 0.11)
}

// A turn's prompt begins with the whole prompt of the turn before and its answer, word for word.
func (s *sample) checkConversations(t *testing.T) {
	last := map[string]*logged{}
	turns, retries := 0, 0
	for i := range s.requests {
		q := &s.requests[i]
		before := last[q.session]
		last[q.session] = q
		if before == nil {
			continue
		}
		if q.arrived.Before(before.end) {
			t.Fatalf("session %s goes on before it was answered", q.session)
		}
		history := before.messages
		if before.failed {
			retries++
		} else {
			turns++
			history = append(history[:len(history):len(history)], before.answer)
		}
		if len(q.messages) < len(history) || strings.Join(q.messages[:len(history)], "\n") != strings.Join(history, "\n") {
			t.Fatalf("session %s: a prompt does not begin with the one before", q.session)
		}
		if before.failed && len(q.messages) != len(history) {
			t.Fatalf("session %s: a retry asks something else", q.session)
		}
	}
	within(t, "share of later turns", float64(turns)/float64(len(s.requests)), 0.4, 0.8)
	within(t, "retries", float64(retries), 5, 200)
}

func (s *sample) checkRequests(t *testing.T) {
	start, end := samplelogs.DefaultStart, samplelogs.DefaultStart.Add(samplelogs.DefaultDuration)
	status := map[string]int{}
	var failed, plain, probes int
	for _, q := range s.requests {
		if q.arrived.Before(start) || !q.arrived.Before(end) {
			t.Errorf("arrival at %v", q.arrived)
		}
		took := q.end.Sub(q.arrived)
		if took <= 0 || took > 3*time.Minute || q.ttft < 0 || q.ttft > took {
			t.Errorf("duration %v with first token after %v", took, q.ttft)
		}
		if q.probe {
			probes++
			continue
		}
		if q.failed {
			failed++
			status[q.status]++
			if q.in != 0 || q.out != 0 || q.answer != "" {
				t.Errorf("a failed request has tokens or an answer")
			}
			continue
		}
		if q.ttft == 0 {
			plain++
		}
		if q.in <= q.cached || q.out < 1 || q.cached%16 != 0 {
			t.Errorf("%d tokens in (%d cached), %d out", q.in, q.cached, q.out)
		}
	}
	n := float64(len(s.requests))
	within(t, "share of failures", float64(failed)/n, 0.004, 0.018)
	within(t, "share of requests that did not stream", float64(plain)/n, 0.03, 0.07)
	within(t, "probes", float64(probes), 72, 72)
	within(t, "ways to fail", float64(len(status)), 6, 8) // 4 ways in two logs
}

func (s *sample) checkLengths(t *testing.T) {
	var in, out, cached, ok, tools, long float64
	for _, q := range s.requests {
		if q.tools {
			tools++
		}
		if q.in >= 8000 {
			long++
		}
		if q.failed || q.probe {
			continue
		}
		ok++
		in += float64(q.in)
		out += float64(q.out)
		cached += float64(q.cached)
	}
	n := float64(len(s.requests))
	within(t, "mean input tokens", in/ok, 1000, 1600)
	within(t, "mean output tokens", out/ok, 120, 190)
	within(t, "cached share of the input", cached/in, 0.5, 0.9)
	within(t, "share with tools", tools/n, 0.12, 0.28)
	within(t, "share of long inputs", long/n, 0.015, 0.06)
}

// Over 20 s, the busiest tenant sometimes has several times its usual number of requests: more than a Poisson
// process of that rate would show.
func (s *sample) checkBursts(t *testing.T) {
	const width = 20 * time.Second
	bins := make([]float64, samplelogs.DefaultDuration/width)
	var total, peak, square float64
	for _, q := range s.requests {
		if q.tenant == "quillmere" {
			bins[q.arrived.Sub(samplelogs.DefaultStart)/width]++
			total++
		}
	}
	mean := total / float64(len(bins))
	for _, n := range bins {
		peak = max(peak, n)
		square += (n - mean) * (n - mean)
	}
	within(t, "peak to mean", peak/mean, 3, 8)
	within(t, "index of dispersion", square/float64(len(bins))/mean, 1.5, 20)
}

// Nothing points to a real place: every host ends in .invalid, there is no mail address, and addresses are from
// the range kept for documentation.
func (s *sample) checkNames(t *testing.T) {
	text := s.text.Bytes()
	for _, host := range regexp.MustCompile(`://[^/:"\\ ]+`).FindAll(text, -1) {
		if !bytes.HasSuffix(host, []byte(".invalid")) {
			t.Fatalf("host %s", host[3:])
		}
	}
	for _, pattern := range []string{`[\w.]+@[\w.]+`, `\b[a-z0-9-]+\.(com|org|net|io|dev|ai|de|es|fr|jp|cn|eu)\b`} {
		if found := regexp.MustCompile(pattern).Find(text); found != nil {
			t.Errorf("%s matches %s", found, pattern)
		}
	}
	for _, address := range regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`).FindAll(text, -1) {
		if !bytes.HasPrefix(address, []byte("192.0.2.")) {
			t.Fatalf("address %s", address)
		}
	}
}

func TestRateScales(t *testing.T) {
	n := 0
	err := samplelogs.Generate(samplelogs.Options{Rate: 4, Duration: 5 * time.Minute}, func(r samplelogs.Record) error {
		n += len(readRecord(t, r))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "requests per second", float64(n)/300, 3.3, 4.7)
}

func TestWriteFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	o := samplelogs.Options{Seed: 3, Duration: 3 * time.Minute}
	paths, err := samplelogs.WriteFiles(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	samplelogs.Generate(o, func(r samplelogs.Record) error {
		path := filepath.Join(dir, r.Topic+".jsonl")
		want[path] = append(append(want[path], r.Value...), '\n')
		return nil
	})
	if len(paths) != 2 || len(want) != 2 {
		t.Fatalf("files %v", paths)
	}
	for _, path := range paths {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want[path]) {
			t.Errorf("%s does not hold the records (%v)", path, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("folder holds %v", entries)
	}
}

func TestErrors(t *testing.T) {
	stop := errors.New("full")
	calls := 0
	err := samplelogs.Generate(samplelogs.Options{Duration: time.Minute}, func(samplelogs.Record) error {
		calls++
		return stop
	})
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	bad := samplelogs.Options{Duration: -time.Second, Rate: math.Inf(1)}
	err = bad.Validate()
	if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "duration") || !strings.Contains(err.Error(), "rate") {
		t.Errorf("options: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "logs")
	if _, err := samplelogs.WriteFiles(dir, bad); err == nil {
		t.Error("bad options wrote files")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("bad options made a folder")
	}
}

func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		n := 0
		samplelogs.Generate(samplelogs.Options{Duration: 10 * time.Minute}, func(r samplelogs.Record) error {
			n += len(r.Value)
			return nil
		})
		b.SetBytes(int64(n))
	}
}
