package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tailgate/internal/testshared"
)

// exampleFiles makes what the examples of the docs start from. A run or verdict that is not a pass is no fault of an example.
const exampleFiles = `
tailgate() { command tailgate "$@" || { code=$?; case $code in 3 | 4 | 5) ;; *) return $code ;; esac; }; }
`

const exampleSetup = exampleFiles + `
tailgate sample -o logs --duration 20m --start 2026-11-28T10:00:00Z
cp logs/litellm.jsonl logs.jsonl
tailgate keys init --keys keys
tailgate ingest logs.jsonl --format litellm --tokenizer chars4 --out lake --keys keys
tailgate publish lake --day 2026-11-28 --keys keys
tailgate profile lake --day 2026-11-28 -o profile
cp -r profile before
tailgate trace export lake --day 2026-11-28 -o trace.jsonl
tailgate trace export lake --day 2026-11-28 -o day.jsonl.zst
printf 'capacity_gate: {success_rate: ">= 0.9", ttft_p95: "<= 5s"}\n' > gate.yaml
tailgate replay trace.jsonl --target sim: --warmup 0 --out run
cp trace.jsonl trace.jsonl.copy && gzip trace.jsonl.copy && mv trace.jsonl.copy.gz trace.jsonl.gz
`

// page says how the examples of one page are run.
type page struct {
	before  string            // commands that make what this page alone needs
	replace map[string]string // names of what only a cluster has → what stands for it
	skip    map[string]string // examples that begin so are not run → why
}

const (
	needsCluster = "needs a cluster"
	needsBucket  = "needs a bucket; the suite of lakes in buckets runs these commands"
	needsBroker  = "goes on until it is stopped; the Kafka suite runs it"
	isSynopsis   = "says what can be given, with brackets"
)

// everyPage holds for all pages.
var everyPage = page{
	replace: map[string]string{"http://cluster:8000": "sim:", "--target URL": "--target sim:", " …": "", "2026-09-01": "2026-11-28"},
	skip:    map[string]string{"export AWS_REGION": needsBucket},
}

var pages = map[string]page{
	"README.md": {
		before: `rm -r lake run profile; tailgate sample --to "$BROKER" --duration 20m --start 2026-11-28T10:00:00Z`,
		replace: map[string]string{"kafka://broker:9092/gateway-logs": `"$BROKER/sample-litellm"`, "--format litellm --out": "--format litellm --tokenizer chars4 --out",
			"--window 0..5m": "--window 0..5m --warmup 0"},
		skip: map[string]string{"make ": "is what CI begins with", "tailgate capacity plan.yaml": "the script capacity.txtar runs a plan"},
	},
	"docs/ingest.md":   {skip: map[string]string{"# the same command on every machine": needsBroker}},
	"docs/keys.md":     {skip: map[string]string{"tailgate keys init --keys KEYS ": isSynopsis, "tailgate keys init --keys 'exec:": "needs key services; the script keys.txtar runs the toy one"}},
	"docs/privacy.md":  {skip: map[string]string{"tailgate audit LAKE": isSynopsis, "tailgate forget ": "needs a root and a name; the script forget.txtar has them"}},
	"docs/runbook.md":  {skip: map[string]string{"": "needs a nightly job that has failed; the script refresh.txtar runs these commands"}},
	"docs/backtest.md": {before: "rm -r run", replace: map[string]string{"--window 10h..11h": "--window 10h..10h20m"}},
	"docs/capacity.md": {skip: map[string]string{"tailgate capacity plan.yaml --dry-run": "the script capacity.txtar runs a plan", "tailgate sweep": "the script capacity.txtar runs a sweep",
		"tailgate envelope headroom": "needs an envelope; the script headroom.txtar has one"}},
	"docs/compare-tools.md": {skip: map[string]string{"tailgate analyze artifacts": "needs files of other tools; the script foreign.txtar has them"}},
	"docs/explain.md":       {replace: map[string]string{"RUN": "run", " [--by]": "", " [--trace TRACE]": " --trace trace.jsonl"}},
	"docs/profile.md": {before: "rm -r profile", replace: map[string]string{"--window burst:1": "--window burst:1 --target sim: --out burst", "--hours 13": "--hours 10", "-o h13": "-o h10"},
		skip: map[string]string{"tailgate profile merge": "needs 24 hours; the script profilehours.txtar merges"}},
	"docs/query.md":     {},
	"docs/replay.md":    {skip: map[string]string{"tailgate replay trace.jsonl --targets": needsCluster + "; the script replayshards.txtar has shards"}},
	"docs/report.md":    {before: `for r in 10 20 30; do tailgate replay trace.jsonl --scale $((r / 10)) --target sim: --out run-$r; done`},
	"docs/rescale.md":   {replace: map[string]string{"--classes chat": "--classes interactive", "--window 10m..40m": "--window 5m..15m", "--target-rate 30/s": "--target-rate 3/s"}},
	"docs/sim.md":       {skip: map[string]string{"tailgate sim --truth": "serves until it is stopped; the script simtruth.txtar runs it", "$ tailgate sim fit": "needs a run over HTTP; the script simulated.txtar fits"}},
	"docs/synth.md":     {replace: map[string]string{"--from 14h": "--from 5m", "chat=0.7,agent=0.3": "interactive=0.7,other=0.3", "--duration 1h": "--duration 5m", "at=10m": "at=5m"}},
	"docs/telemetry.md": {skip: map[string]string{"tailgate replay": needsCluster}},
	"docs/traces.md":    {skip: map[string]string{"tailgate profile": "needs profiles of other days; the scripts servegen.txtar and profilemerge.txtar have them"}},
	"docs/lake.md":      {},
}

// example is one block of commands of a page.
type example struct {
	line  int
	lines []string
}

// examples finds the blocks of commands: those fenced as sh, and any other fenced or indented lines that call tailgate.
func examples(text string) []example {
	var out []example
	var open *example
	fence, shell := false, false
	for i, line := range strings.Split(text, "\n") {
		indented, isIndented := strings.CutPrefix(line, "    ")
		command := line
		if !fence {
			command = indented
		}
		switch {
		case strings.HasPrefix(line, "```"):
			fence, shell, open = !fence, line == "```sh", nil
		case fence && shell, (fence || isIndented) && (open != nil || calls.MatchString(command)) && strings.TrimSpace(line) != "":
			if open == nil {
				out = append(out, example{line: i + 1})
				open = &out[len(out)-1]
			}
			open.lines = append(open.lines, command)
		default:
			open = nil
		}
	}
	return out
}

var calls = regexp.MustCompile(`^(\$ )?(tailgate|replay) `)

// script is what a page's examples are as a shell script, and what is left out with its reason.
func (p page) script(list []example) (script string, left []string) {
	var b strings.Builder
	for _, e := range list {
		text := strings.Join(e.lines, "\n") + "\n"
		if why := p.reason(text); why != "" {
			left = append(left, e.lines[0]+": "+why)
			continue
		}
		for _, line := range e.lines {
			if why := p.reason(line); why != "" {
				left = append(left, line+": "+why)
				continue
			}
			b.WriteString(p.put(line) + "\n")
		}
	}
	return b.String(), left
}

func (p page) reason(text string) string {
	for _, rules := range []map[string]string{p.skip, everyPage.skip} {
		for begin, why := range rules {
			if strings.HasPrefix(text, begin) {
				return why
			}
		}
	}
	return ""
}

func (p page) put(line string) string {
	for _, rules := range []map[string]string{everyPage.replace, p.replace} {
		for from, to := range rules {
			line = strings.ReplaceAll(line, from, to)
		}
	}
	return line
}

// TestDocExamples runs the examples of README and docs. What is not run is told, with the reason; a page with examples that the
// table above does not know is an error.
func TestDocExamples(t *testing.T) {
	testshared.NotUnderRace(t, "commands one after the other, and nothing that other tests do not race")
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	root := filepath.Join("..", "..")
	bin, base := t.TempDir(), t.TempDir()
	linkSelf(t, filepath.Join(bin, "tailgate"))
	broker := testBroker(t)
	run := func(t *testing.T, dir, script string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), shell, "-euc", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "BROKER="+broker, "TTFT_P99_SLO=5s", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, out[max(0, len(out)-2000):])
		}
	}
	run(t, base, exampleSetup)
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	generated := []string{"cli.md", "columns.md"} // from what the commands say themselves
	seen := 0
	for _, path := range append(found, filepath.Join(root, "README.md")) {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list := examples(string(data))
		p, known := pages[name]
		if len(list) == 0 || slices.Contains(generated, filepath.Base(path)) {
			continue
		}
		if !known {
			t.Errorf("%s:%d: examples that are not run: give the page a line in the table of pages", name, list[0].line)
			continue
		}
		script, left := p.script(list)
		if script != "" {
			seen++
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, l := range left {
				t.Log("not run: ", l)
			}
			if script == "" {
				return
			}
			dir := filepath.Join(t.TempDir(), "work")
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "keys"), 0o700); err != nil {
				t.Fatal(err)
			}
			keys, _ := filepath.Glob(filepath.Join(dir, "keys", "*"))
			for _, key := range keys {
				if err := os.Chmod(key, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run(t, dir, exampleFiles+p.before+"\n"+script)
		})
	}
	if seen < 8 {
		t.Errorf("only %d pages were run: the examples are not found", seen)
	}
}

func TestExamplesAreFound(t *testing.T) {
	text := "Text\n\n    tailgate a b \\\n        --c\n    tailgate d\n\nx\n```sh\nmake\n\n# note\n```\n```yaml\na: 1\n```\n```\ntailgate k\nmore\n```\n    not: this\n"
	got := examples(text)
	want := [][]string{{"tailgate a b \\", "    --c", "tailgate d"}, {"make", "", "# note"}, {"tailgate k", "more"}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i, e := range got {
		if !slices.Equal(e.lines, want[i]) {
			t.Errorf("%q, want %q", e.lines, want[i])
		}
	}
}
