package refresh

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/fault"
)

var updatePrivacy = flag.Bool("update-privacy", false, "write the golden file of privacy.json anew")

// privacyNight is a night over one published day, with what the job would note of its build.
func privacyNight(t *testing.T) (*site, *Night) {
	t.Helper()
	s := newSite(t)
	s.ingest(requestsOf(0, 80, true), 0)
	s.publish(0, 5)
	n := s.night(Config{Lateness: 32 * time.Minute, Retention: RetentionConfig{BlockKeys: 48 * time.Hour, Pseudonym: 90 * 24 * time.Hour}}, nightAt(1).Add(time.Hour))
	report, err := ingest.Publish(t.Context(), ingest.PublishOptions{Lake: s.path(LakeFolder), Day: dayName(0), K: 5, MinRequests: 5, Tool: "test"})
	if err != nil {
		t.Fatal(err)
	}
	result, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{Day: dayName(0), Steps: map[Step]*entry{StepPublish: {Result: result}}}
	if err := n.writeJournal(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	return s, n
}

func readPrivacy(t *testing.T, s *site) (*PrivacyReport, []byte) {
	t.Helper()
	data, err := os.ReadFile(s.path(ReportFolder(dayName(0)), PrivacyName))
	if err != nil {
		t.Fatal(err)
	}
	r := &PrivacyReport{}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	return r, data
}

// validPrivacy holds a report to its JSON Schema.
func validPrivacy(t *testing.T, data []byte) {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile("../schemas/privacy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(doc); err != nil {
		t.Error(err)
	}
}

func TestPrivacyReport(t *testing.T) {
	s, n := privacyNight(t)
	if err := WritePrivacy(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	r, data := readPrivacy(t, s)
	validPrivacy(t, data)
	if r.Canary.Result != CanaryClean || r.Canary.Planted < 500 || r.Canary.Pages < 1000 || len(r.Canary.Formats) != len(ingest.Formats()) {
		t.Errorf("%+v", r.Canary)
	}
	if n.Status.Privacy == nil || n.Status.Privacy.Canary != CanaryClean || n.Status.Privacy.SuppressedLabels != 5 {
		t.Errorf("%+v", n.Status.Privacy)
	}
	if r.Rows != 80 || r.Blocks.Private == 0 || len(r.Keys) != 3 {
		t.Errorf("%+v %+v %+v", r.Rows, r.Blocks, r.Keys)
	}
	// What changes with the samples is no matter of the layout.
	r.Canary.Planted, r.Canary.Spellings, r.Canary.Files, r.Canary.Bytes, r.Canary.Pages, r.Canary.Values, r.Canary.Days = 0, 0, 0, 0, 0, 0, 0
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "privacy.json.golden")
	if *updatePrivacy {
		s.mkdir("testdata")
		s.write(golden, string(got)+"\n")
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("run with -update-privacy if this is meant: %s", diff)
	}
}

// leaky is an anonymizer that lets the name of a clock through, as a build that is broken might.
type leaky struct {
	ingest.Anonymizer
	kind string
}

func (l leaky) Token(kind string, value []byte) string {
	if kind == l.kind {
		return string(value)
	}
	return l.Anonymizer.Token(kind, value)
}

// A build that leaks says so, and ends with exit 7.
func TestALeakingBuildIsFound(t *testing.T) {
	for _, kind := range []string{anonymize.KindRequest, anonymize.KindModel, anonymize.KindRecord} {
		t.Run(kind, func(t *testing.T) {
			s, n := privacyNight(t)
			err := writePrivacy(t.Context(), n, n.Day, func(a ingest.Anonymizer) ingest.Anonymizer { return leaky{a, kind} })
			if fault.Of(err) != fault.Key {
				t.Fatalf("%v", err)
			}
			r, data := readPrivacy(t, s)
			validPrivacy(t, data)
			if r.Canary.Result != CanaryFound || r.Canary.Found == 0 || len(r.Canary.Findings) == 0 || n.Status.Privacy.Canary != CanaryFound {
				t.Errorf("%+v", r.Canary)
			}
			if exit := exitOf(OutcomeFailed, err); exit != 7 {
				t.Errorf("exit %d", exit)
			}
			if strings.Contains(string(data), "Wren0") {
				t.Error("the report has a canary in it")
			}
		})
	}
}

func TestCanariesOfKilledChecksAreRemoved(t *testing.T) {
	in := t.TempDir()
	folder := func(name string, age time.Duration) string {
		dir := filepath.Join(in, name)
		if err := os.MkdirAll(filepath.Join(dir, "out"), 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	folder("tailgate-canary-1", 25*time.Hour)
	running, other := folder("tailgate-canary-2", time.Hour), folder("other", 25*time.Hour)
	made, err := canaryFolder(in)
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(in, "*"))
	want := []string{running, other, made}
	slices.Sort(want)
	if diff := cmp.Diff(want, left); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
