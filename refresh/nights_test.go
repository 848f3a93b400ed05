package refresh_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/objstore"
	"tailgate/refresh"
	"tailgate/schemas"
)

// site is one installation of the nightly job: a root and its keys.
type site struct {
	Log     string // URL of the topic
	Format  string // of its records
	Dir     string
	Bucket  string // URL of a root in a bucket; "" = a folder below Dir
	Server  string // URL of the bucket's server
	More    string // settings of the refresh file
	Late    string // of the refresh file; "" = rebuild
	Rows    int64  // of a segment
	MinRows int    // requests of a label that keeps its name
}

// newSite makes the keys of all days, the same for every site: the bytes of two installations can be compared.
func newSite(t *testing.T, log *gatewayLog) *site {
	t.Helper()
	s := &site{Log: log.url, Format: log.format.name, Dir: t.TempDir(), Rows: int64(max(log.perDay/6, 100)), MinRows: 5}
	if err := os.Mkdir(s.keys(), 0o700); err != nil {
		t.Fatal(err)
	}
	s.key(t, "topics")
	s.key(t, "p-"+stamp(log.first.AddDate(0, 0, -1)))
	for i := -1; i <= log.days; i++ {
		s.key(t, "b-"+stamp(log.day(i)))
	}
	return s
}

func (s *site) keys() string { return filepath.Join(s.Dir, "keys") }

func (s *site) root() string {
	if s.Bucket != "" {
		return s.Bucket
	}
	return filepath.Join(s.Dir, "root")
}

// open opens a bucket; nil where the root is a folder. The parts are small: what is larger is sent in more than one.
func (s *site) open(ctx context.Context, folder string) (*objstore.S3, error) {
	if s.Bucket == "" {
		return nil, nil
	}
	return objstore.OpenS3(ctx, s.Bucket+folder, objstore.S3Options{Endpoint: s.Server, PartBytes: partBytes()})
}

// stamp is a time in the name of a key.
func stamp(at time.Time) string { return at.UTC().Format("20060102T150405.000000Z") }

func (s *site) key(t *testing.T, name string) {
	t.Helper()
	sum := sha256.Sum256([]byte("not a secret: " + name))
	if err := os.WriteFile(filepath.Join(s.keys(), name+".key"), sum[:], 0o600); err != nil {
		t.Fatal(err)
	}
}

// night is one run of the job.
type night struct {
	Day      string
	To       string
	Now      time.Time
	Backfill bool
}

// run does a night, with crash called at each point of it.
func (s *site) run(ctx context.Context, n night, crash func(point string)) (*refresh.Status, error) {
	late := s.Late
	if late == "" {
		late = refresh.LateRebuild
	}
	c, err := refresh.ParseConfig("refresh.yaml", fmt.Appendf(nil, `
root: %s
source: %s
keys: %s
late: %s
lease: 8s
ingest: {format: %s}
%s
`, s.root(), s.Log, s.keys(), late, s.Format, cmp.Or(s.More, "traces: {classes: [all, interactive], scales: [1.5x]}")), os.LookupEnv)
	if err != nil {
		return nil, err
	}
	o := refresh.Options{Config: c, Day: n.Day, To: n.To, Backfill: n.Backfill, Tool: "nights", Crash: crash, Now: func() time.Time { return n.Now },
		Hash: anonymize.Options{Memo: -1}, Publish: ingest.PublishOptions{K: 2, MinRequests: s.MinRows},
		Ingest: ingest.Options{Format: s.Format, MinFree: -1, RotateRows: s.Rows, RotateAge: 24 * time.Hour},
		Open: func(ctx context.Context) (ingest.Source, error) {
			return ingest.OpenKafka(ctx, s.Log, ingest.KafkaOptions{MaxWait: 50 * time.Millisecond})
		}}
	if o.Bucket, err = s.open(ctx, "/"+refresh.LakeFolder); err != nil {
		return nil, err
	}
	bucket, err := s.open(ctx, "")
	if err != nil {
		return nil, err
	}
	if o.Root, err = refresh.OpenRoot(s.root(), bucket); err != nil {
		return nil, err
	}
	if o.Keys, err = anonymize.OpenKeyDir(s.keys()); err != nil {
		return nil, err
	}
	return refresh.Run(ctx, o)
}

// nightOf is the regular night of a day: at four in the morning after it.
func (g *gateway) nightOf(day int) night {
	return night{Day: g.date(day), Now: g.day(day + 1).Add(4 * time.Hour)}
}

// crashed is what a crash throws.
type crashed string

// crashAt is run, which dies where visit says so. died tells where it did.
func (s *site) crashAt(ctx context.Context, n night, at func(point string) bool) (status *refresh.Status, died string, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case crashed:
			died = string(p)
		default:
			panic(p)
		}
	}()
	p := newPoints()
	status, err = s.run(ctx, n, func(point string) {
		if place := p.place(point); at(place) {
			panic(crashed(place))
		}
	})
	return status, "", err
}

// points names the places of a run: each point by the step that it lies in and its number there, so that a run which goes
// on behind done steps has the same names.
type points struct {
	step string
	seen map[string]int
}

func newPoints() *points { return &points{seen: map[string]int{}} }

func (p *points) place(point string) string {
	if strings.HasPrefix(point, "step-") || point == "before-good" {
		p.seen[point]++
		p.step = fmt.Sprint(point, "#", p.seen[point])
		return p.step
	}
	name := p.step + " " + point
	p.seen[name]++
	return fmt.Sprint(name, "#", p.seen[name])
}

// tables are digests of all that a day is made of, by path. Manifests hold times; what they say of files counts.
func (s *site) tables(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range s.objects(t, "lake", "profiles", "traces") {
		data, name := o.data, path.Base(o.key)
		if strings.Contains(o.key, "/_") || name == "lock" { // segments and builds
			continue
		}
		if name == schemas.ManifestName {
			m, err := schemas.ParseManifest(o.key, data)
			if err != nil {
				t.Fatal(err)
			}
			if data, err = json.Marshal([]any{m.Files, m.Inputs, m.Notes, m.Epoch, m.Seed}); err != nil {
				t.Fatal(err)
			}
		}
		sum := sha256.Sum256(data)
		out[o.key] = hex.EncodeToString(sum[:])
	}
	return out
}

// stored is an object of a root.
type stored struct {
	key  string
	data []byte
}

// objects reads what lies below some folders of the root.
func (s *site) objects(t *testing.T, folders ...string) (out []stored) {
	t.Helper()
	var root interface {
		objstore.Opener
		List(ctx context.Context, folder string) ([]objstore.Object, error)
	} = objstore.NewDir(s.root())
	if s.Bucket != "" {
		b, err := s.open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		root = b
	}
	for _, folder := range folders {
		list, err := root.List(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			data, err := objstore.ReadAll(t.Context(), root, o.Key)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, stored{o.Key, data})
		}
	}
	return out
}

// digests is the table of a report: a line for each day, with the digest of its file of the lake, and of all files of its profile
// and of its traces.
func digests(tables map[string]string) string {
	byDay := map[string][3][]string{}
	for _, path := range slices.Sorted(maps.Keys(tables)) {
		stage, rest, _ := strings.Cut(path, "/")
		day, name, _ := strings.Cut(rest, "/")
		list := byDay[day]
		i := slices.Index([]string{"lake", "profiles", "traces"}, stage)
		if i == 0 && name == schemas.ManifestName {
			continue
		}
		list[i] = append(list[i], name+tables[path])
		byDay[day] = list
	}
	var b strings.Builder
	for _, day := range slices.Sorted(maps.Keys(byDay)) {
		fmt.Fprintf(&b, "%s", day)
		for i, name := range []string{"requests", "profile", "traces"} {
			sum := sha256.Sum256([]byte(strings.Join(byDay[day][i], "\n")))
			fmt.Fprintf(&b, "  %s %x", name, sum[:8])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// sameTables holds what a site has against what an undisturbed one has.
func sameTables(t *testing.T, when string, want, got map[string]string) {
	t.Helper()
	bad := 0
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			if bad++; bad < 8 {
				t.Errorf("%s: %s is not that of an undisturbed run", when, path)
			}
		}
	}
	for path := range got {
		if want[path] == "" {
			t.Errorf("%s: %s is in no undisturbed run", when, path)
		}
	}
	if len(want) == 0 {
		t.Errorf("%s: there is nothing to compare", when)
	}
}
