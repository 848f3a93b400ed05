package ingest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tailgate/internal/objstore"
)

// TestProvePublishInABucket publishes the day of TestProvePublish in a bucket, by a process of its own: the same
// bytes as in a folder, by one upload in parts, in less than 2 GiB of memory.
func TestProvePublishInABucket(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("takes minutes: TAILGATE_PROVE=full")
	}
	backend := s3mem.New()
	if err := backend.CreateBucket("b"); err != nil {
		t.Fatal(err)
	}
	var parts atomic.Int64
	fake := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("partNumber") {
			parts.Add(1)
		}
		r.Header.Del("X-Amz-Checksum-Crc32") // it would keep that of an earlier object for one that comes in parts
		fake.ServeHTTP(w, r)
	}))
	defer server.Close()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_CONFIG_FILE": os.DevNull,
		"TAILGATE_S3_ENDPOINT": server.URL} {
		t.Setenv(name, value)
	}
	folder, n := t.TempDir(), proveRows()
	proveLake(t, folder, n)
	bucket, err := objstore.OpenS3(t.Context(), "s3://b/lake", objstore.S3Options{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	local := objstore.NewDir(folder)
	list, err := local.List(t.Context(), segmentsFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		data, err := objstore.ReadAll(t.Context(), local, o.Key)
		if err == nil {
			err = bucket.Replace(t.Context(), o.Key, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	child := func(lake string) spent {
		return timed(t, exec.Command(os.Args[0], "-test.run", "^TestProvePublishChild$", "-test.v"), "TAILGATE_PROVE_LAKE="+lake)
	}
	inFolder, inBucket := child(folder), child("s3://b/lake")
	t.Logf("publish in a bucket: %d rows in %v, %d parts; in a folder %v: %.2f times as long", n, inBucket, parts.Load(), inFolder,
		inBucket.took.Seconds()/inFolder.took.Seconds())
	if inBucket.rss > 2<<30 {
		t.Errorf("publish took %d MiB, more than 2 GiB", inBucket.rss>>20)
	}
	want, err := digestOf(t.Context(), local, dayKey(proveDay, lakeFile))
	if err != nil {
		t.Fatal(err)
	}
	got, err := digestOf(t.Context(), bucket, dayKey(proveDay, lakeFile))
	if err != nil || got != want {
		t.Errorf("the day in the bucket is %+v, in the folder %+v, %v", got, want, err)
	}
}
