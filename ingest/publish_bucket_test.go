package ingest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"tailgate/ingest"
	"tailgate/prompt"
	"tailgate/schemas"
)

// A day in a bucket has the bytes that it has in a folder.
func TestPublishGivesABucketTheBytesOfAFolder(t *testing.T) {
	b := newBucket(t)
	folder := lakeIn(t, traffic(8, 400), 70)
	_, want := publishWith(t, ingest.PublishOptions{Lake: folder, K: 3, MinRequests: 1, Keys: fakeKeys})
	for _, key := range objectsIn(t, folder, "_segments", "") {
		writeObject(t, b.lake("lake"), key, readObject(t, folder, key))
	}
	for _, memory := range []int{1, 1 << 30} {
		r, got := publishWith(t, ingest.PublishOptions{Lake: b.lake("lake"), K: 3, MinRequests: 1, Keys: fakeKeys, Memory: memory})
		if !bytes.Equal(got, want) || memory == 1 && r.Spilled == 0 {
			t.Errorf("%d bytes of memory: other bytes than in a folder, or nothing spilled (%d)", memory, r.Spilled)
		}
	}
}

// bulky is an anonymizer that gives many ids, which two requests share: the day is large beside its requests.
type bulky struct {
	fakeAnon
	blocks int
}

func (a bulky) Blocks(ids []int64, p *prompt.Prompt) ([]int64, int, error) {
	sum := a.sum(p.Messages[0].Parts[0].Text)
	for i := range a.blocks {
		if i%4 == 0 {
			sum = a.sum(sum)
		}
		ids = append(ids, int64(binary.BigEndian.Uint64(sum[8*(i%4):])&^(1<<63)))
	}
	return ids, 16 * a.blocks, nil
}

// bulkyLake makes a lake in a bucket whose day is put in several parts. A real server wants 5 MiB of a part.
func bulkyLake(t *testing.T, b *bucket) string {
	t.Helper()
	n, blocks, part := 60, 200, 16<<10
	if os.Getenv(envS3) != "" {
		n, blocks, part = 800, 2500, 5<<20
	}
	var recs []ingest.Record
	for i := range n {
		recs = append(recs, message(int64(i), litellm(i, fields{"messages": fmt.Sprint("pair ", i%(n/2)), "prompt_tokens": 16 * blocks})))
	}
	o := options(b.lake("bulky"))
	o.Anonymizer = bulky{fakeAnon: fakeAnon{key: "k1"}, blocks: blocks}
	run(t, newMemory(recs), o)
	t.Setenv(envPart, fmt.Sprint(part))
	return b.lake("bulky")
}

// partNumber tells which part of an upload a request brings, "" = none.
func partNumber(r *http.Request) string {
	if r.Method != http.MethodPut {
		return ""
	}
	return r.URL.Query().Get("partNumber")
}

const envBulky = "TAILGATE_TEST_BULKY" // the lake that the child of TestPublishInParts publishes

// A large day is put in parts, and becomes the live one with the last step. A failure leaves nothing, and a kill
// nothing that the next build does not remove.
func TestPublishInParts(t *testing.T) {
	build := func(lake, tool string) ingest.PublishOptions {
		return ingest.PublishOptions{Lake: lake, Day: baseDay, K: 1, MinRequests: 1, Tool: tool}
	}
	if lake := os.Getenv(envBulky); lake != "" {
		_, _ = publishAt(t, build(lake, "killed"))
		return
	}
	b := newBucket(t)
	lake := bulkyLake(t, b)
	var parts atomic.Int64
	count := func(_ http.ResponseWriter, r *http.Request) bool {
		if partNumber(r) != "" {
			parts.Add(1)
		}
		return false
	}
	b.before.Store(&count)
	r, old := publishWith(t, build(lake, "old"))
	if parts.Load() < 3 || b.uploads() != 0 {
		t.Fatalf("%d bytes in %d parts, %d uploads open", len(old), parts.Load(), b.uploads())
	}
	t.Logf("%d rows, %d bytes in %d parts", r.Rows, len(old), parts.Load())
	same := func(when string, uploads int) {
		t.Helper()
		if !bytes.Equal(readObject(t, lake, dayKey), old) || b.uploads() != uploads {
			t.Errorf("%s: other bytes are live, or %d uploads are open", when, b.uploads())
		}
	}
	refuse := func(w http.ResponseWriter, r *http.Request) bool {
		if partNumber(r) != "2" {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>", http.StatusForbidden)
		return true
	}
	b.before.Store(&refuse)
	if _, err := publishAt(t, build(lake, "refused")); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Fatalf("%v", err)
	}
	same("a part was refused", 0)

	cmd, started := child(t, envBulky+"="+lake), make(chan struct{})
	kill := func(_ http.ResponseWriter, r *http.Request) bool {
		if partNumber(r) != "2" {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		<-started
		_ = cmd.Process.Kill()
		panic(http.ErrAbortHandler)
	}
	b.before.Store(&kill)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the publisher was not killed: %v", err)
	}
	b.before.Store(nil)
	same("killed in the middle of an upload", 1)
	if _, got := publishWith(t, build(lake, "new")); bytes.Equal(got, old) || b.uploads() != 0 {
		t.Errorf("after the kill: the old bytes are live, or %d uploads are open", b.uploads())
	}
	if _, got := publishWith(t, build(lake, "old")); !bytes.Equal(got, old) {
		t.Error("the same build has other bytes")
	}
}

// checkManifest wants the manifest of the live object.
func checkManifest(t *testing.T, lake string) {
	t.Helper()
	m, err := schemas.ParseManifest("manifest", readObject(t, lake, "day="+baseDay+"/"+schemas.ManifestName))
	if err != nil || m.Files[0].Bytes != int64(len(readObject(t, lake, dayKey))) {
		t.Errorf("the manifest is of another build: %+v, %v", m, err)
	}
}

// Of two builds of a day one is the live one, with its manifest: the slower gives way, whenever the other comes.
func TestPublishesOfADayInABucketOvertake(t *testing.T) {
	b := newBucket(t)
	lake := lakeIn(t, traffic(9, 60), 500)
	for _, key := range objectsIn(t, lake, "_segments", "") {
		writeObject(t, b.lake("lake"), key, readObject(t, lake, key))
	}
	lake = b.lake("lake")
	publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Tool: "first"})
	for point, fails := range map[string]bool{"after-scan": true, "before-archive": true, "before-rename": true, "before-manifest": false} {
		var fast []byte
		o := ingest.PublishOptions{Lake: lake, Day: baseDay, K: 1, MinRequests: 1, Tool: "slow " + point}
		ingest.SetPublishHook(&o, func(at string) error {
			if at == point {
				_, fast = publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Tool: "a faster one " + point})
			}
			return nil
		})
		_, err := publishAt(t, o)
		if (err != nil) != fails || err != nil && !strings.Contains(err.Error(), "another publish of this day was faster") {
			t.Errorf("%s: %v", point, err)
		}
		if !bytes.Equal(readObject(t, lake, dayKey), fast) {
			t.Errorf("%s: the faster build is not the live one", point)
		}
		checkManifest(t, lake)
	}
}

// The answer to a write may be lost after the write took place; a store may not hold conditions.
func TestPublishAndTheAnswersOfAStore(t *testing.T) {
	b := newBucket(t)
	lake := b.lake("lake")
	o := options(lake)
	run(t, newMemory(hundred(t)), withBad(o))
	t.Run("lost", func(t *testing.T) {
		lost := map[string]bool{}
		lose := func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/day=") || lost[r.URL.Path] {
				return false
			}
			lost[r.URL.Path] = true
			body, _ := io.ReadAll(r.Body)
			again, _ := http.NewRequestWithContext(r.Context(), r.Method, b.url+r.URL.RequestURI(), bytes.NewReader(body))
			again.Header, again.ContentLength = r.Header, r.ContentLength
			if resp, err := http.DefaultClient.Do(again); err == nil {
				resp.Body.Close()
			}
			panic(http.ErrAbortHandler)
		}
		b.before.Store(&lose)
		defer b.before.Store(nil)
		if r, _ := publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1}); r.Rows != 100 || len(lost) != 2 {
			t.Errorf("%d rows, %d answers lost", r.Rows, len(lost))
		}
		checkManifest(t, lake)
	})
	t.Run("no conditions", func(t *testing.T) {
		needFakeS3(t)
		careless := func(_ http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("If-Match")
			return false
		}
		b.before.Store(&careless)
		defer b.before.Store(nil)
		var log bytes.Buffer
		publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Tool: "careless", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if !strings.Contains(log.String(), "does not hold the condition") {
			t.Errorf("no warning: %s", &log)
		}
	})
	t.Run("gone", func(t *testing.T) {
		missing := ingest.PublishOptions{Lake: "s3://no-such-bucket/lake", Day: baseDay}
		if _, err := publishAt(t, missing); err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
			t.Errorf("%v", err)
		}
	})
	if _, err := publishAt(t, ingest.PublishOptions{Day: baseDay}); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("no lake: %v", err)
	}
}

// withBad lets any share of records be bad.
func withBad(o ingest.Options) ingest.Options {
	o.MaxBad = 1
	return o
}
