package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// laughs is YAML whose anchors name each other: nine words become 10^n.
func laughs(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol,lol]\n")
	for i := 1; i <= n; i++ {
		ref := fmt.Sprintf("*a%d", i-1)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(ref+",", 10), ","))
	}
	fmt.Fprintf(&b, "rules: *a%d\ncapacity_gate: *a%d\ntarget: *a%d\nfields: *a%d\n", n, n, n, n)
	return b.String()
}

// TestHostileSettings gives YAML that is none, or too much, to each command that reads some: exit 2, with the line.
func TestHostileSettings(t *testing.T) {
	keys := newKeys(t)
	contents := []struct {
		name    string
		content any
	}{
		{"a billion laughs", laughs(12)},
		{"an anchor of itself", "a: &a [*a]\nrules: *a\ncapacity_gate: *a\n"},
		{"brackets", strings.Repeat("[", 60_000)},
		{"braces", strings.Repeat("{a: ", 15_000)},
		{"indents", func(w io.Writer) error {
			for i := range 300 {
				fmt.Fprintf(w, "%s- a:\n", strings.Repeat(" ", i))
			}
			return nil
		}},
		{"dashes", strings.Repeat("- ", 30_000)},
		{"question marks", strings.Repeat("? ", 30_000)},
		{"keys that stand twice", strings.Repeat("capacity_gate: {ttft_p99: \"<= 1s\"}\n", 1500)},
		{"merge keys", "a: &a {ttft_p99: \"<= 1s\"}\ncapacity_gate: {<<: *a, <<: *a}\n"},
		{"a merge key of itself", "a: &a\n  <<: *a\n"},
		{"100 MiB", repeated("a: ", strings.Repeat("b", 1<<20), 100, "\n")},
		{"a line of quotes", strings.Repeat(`"`, 60_000)},
		{"a tag of nothing", "!!python/object/apply:os.system [\"true\"]\n"},
		{"NULs", strings.Repeat("\x00", 1000)},
		{"broken UTF-8", "a: \xff\xfe\nb: \xed\xa0\x80\n"},
		{"numbers", "capacity_gate: {ttft_p99: \"<= 1e999999s\", success_rate: \">= 1e-999999\"}\nwarmup: 99999999999999999999h\n"},
		{"documents", strings.Repeat("---\na: 1\n", 8000)},
		{"variables", "capacity_gate: {ttft_p99: \"" + strings.Repeat("${A}", 10_000) + "\"}\n"},
		{"nothing", ""},
	}
	readers := []struct {
		name string
		args []string
	}{
		{"gate", []string{"analyze", "results.jsonl", "--gate", "f.yaml"}},
		{"plan", []string{"capacity", "f.yaml", "--out", "out"}},
		{"refresh", []string{"refresh", "f.yaml"}},
		{"classes", ingesting("litellm", keys, "--classes", "f.yaml")},
		{"exclude", ingesting("litellm", keys, "--exclude", "f.yaml")},
		{"models", ingesting("litellm", keys, "--models", "f.yaml")},
		{"mapping", ingesting("mapped:f.yaml", keys)},
		{"targets", []string{"replay", "trace.jsonl", "--targets", "f.yaml", "--out", "out"}},
	}
	var cases []hostile
	for _, r := range readers {
		for i, c := range contents {
			if !proving() && r.name != "gate" && r.name != "classes" && i%3 != len(r.name)%3 {
				continue
			}
			cases = append(cases, hostile{name: r.name + ", " + c.name, args: r.args, exit: []int{2}, files: map[string]any{
				"f.yaml": c.content, "log": goodLiteLLM + "\n", "trace.jsonl": `{"timestamp":0,"input_length":8,"output_length":2}` + "\n",
				"results.jsonl": `{"id":1,"sent_ms":0,"first_ms":5,"last_ms":9,"output_tokens":3,"status":"ok"}` + "\n",
			}, says: `f\.yaml`})
		}
	}
	survives(t, cases)
}

// TestHostileTokenizers: tokenizer.json, tokenizer_config.json and chat templates of a model that nobody knows.
func TestHostileTokenizers(t *testing.T) {
	keys := newKeys(t)
	real, err := os.ReadFile("../../internal/bpe/testdata/hf/gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	swap := func(from, to string) string {
		before, after, ok := strings.Cut(string(real), from)
		if !ok {
			t.Fatalf("the tokenizer has no %s", from)
		}
		return before + to + after
	}
	prompt := strings.Replace(goodLiteLLM, "hello", strings.Repeat("a", 1<<20), 1) + "\n"
	files := []struct {
		name, flag, file string
		content          any
		exit             []int
	}{
		{"nested", "--tokenizer", "t.json", strings.Repeat("[", 4<<20), nil},
		{"nested settings", "--tokenizer", "t.json", swap(`"model"`, `"normalizer":`+strings.Repeat(`{"type":"Sequence","normalizers":[`, 100_000)+strings.Repeat(`]}`, 100_000)+`,"model"`), nil},
		{"too long", "--tokenizer", "t.json", repeated(`{"x":"`, strings.Repeat("a", 1<<20), 70, `"}`), nil},
		{"a vocabulary of millions", "--tokenizer", "t.json", func(w io.Writer) error {
			fmt.Fprint(w, `{"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0`)
			for i := range size(500_000, 3_000_000) {
				fmt.Fprintf(w, `,"a%x":%d`, i, i+1)
			}
			fmt.Fprint(w, `},"merges":[]}}`)
			return nil
		}, nil},
		{"ids of 2^62", "--tokenizer", "t.json", `{"added_tokens":[{"id":4611686018427387904,"content":"x"}],"model":{"type":"BPE","vocab":{"a":4611686018427387904},"merges":[]}}`, nil},
		{"a pattern that blows up", "--tokenizer", "t.json", swap(`"pre_tokenizer"`, `"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+$"},"behavior":"Isolated","invert":false},"x"`), nil},
		{"merges of nothing", "--tokenizer", "t.json", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[` + strings.Repeat(`"a a",`, 300_000) + `"a a"]}}`, nil},
		{"a text of one letter", "--tokenizer", "t.json", string(real), []int{0}},
		{"no end", "--tokenizer", "/dev/zero", "", nil},
		{"loops", "--template", "t.jinja", `{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}x{% endfor %}{% endfor %}{% endfor %}`, nil},
		{"a range of 10^18", "--template", "t.jinja", `{% for a in range(1000000000000000000) %}x{% endfor %}`, nil},
		{"text that doubles", "--template", "t.jinja", `{% set ns = namespace(s='aaaaaaaa') %}{% for a in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}`, nil},
		{"text times a number", "--template", "t.jinja", `{{ 'a' * 10000000000 }}`, nil},
		{"lists that double", "--template", "t.jinja", `{% set ns = namespace(l=[1]) %}{% for a in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}{{ ns.l }}`, nil},
		{"a list that holds itself", "--template", "t.jinja", `{% set l = [] %}{% for a in range(60) %}{% set l = [l, l] %}{% endfor %}{{ l|tojson }}`, nil},
		{"a macro of itself", "--template", "t.jinja", `{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}`, nil},
		{"macros that fork", "--template", "t.jinja", `{% macro f(n) %}{% if n > 0 %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(64) }}`, nil},
		{"replacing", "--template", "t.jinja", `{% set ns = namespace(s='aaaaaaaaaa') %}{% for a in range(30) %}{% set ns.s = ns.s.replace('a', 'aaaaaaaaaa') %}{% endfor %}{{ ns.s }}`, nil},
		{"joining", "--template", "t.jinja", `{{ range(99999)|join('` + strings.Repeat("x", 100_000) + `') }}`, nil},
		{"indenting", "--template", "t.jinja", `{{ ('a\n' * 100000)|indent(1000000) }}`, nil},
		{"numbers that grow", "--template", "t.jinja", `{% set ns = namespace(n=9) %}{% for a in range(99999) %}{% set ns.n = ns.n * ns.n %}{% endfor %}{{ ns.n }}`, nil},
		{"powers", "--template", "t.jinja", `{{ 9 ** 9 ** 9 ** 9 }}`, nil},
		{"sorting", "--template", "t.jinja", `{% for a in range(9999) %}{{ range(99999)|list|sort|reverse|list|length }}{% endfor %}`, nil},
		{"brackets", "--template", "t.jinja", `{{ ` + strings.Repeat("(", 200_000), nil},
		{"blocks", "--template", "t.jinja", strings.Repeat(`{% if true %}`, 100_000), nil},
		{"signs", "--template", "t.jinja", `{{ ` + strings.Repeat("- ", 500_000) + `1 }}`, nil},
		{"nots", "--template", "t.jinja", `{{ ` + strings.Repeat("not ", 300_000) + `1 }}`, nil},
		{"filters", "--template", "t.jinja", `{{ 'a'` + strings.Repeat("|upper", 200_000) + ` }}`, nil},
		{"pieces", "--template", "t.jinja", `{{ a` + strings.Repeat(".a", 400_000) + ` }}`, nil},
		{"a template of 64 MiB", "--template", "t.jinja", repeated("", strings.Repeat("a", 1<<20), 64, ""), nil},
		{"no end of a template", "--template", "/dev/zero", "", nil},
	}
	var cases []hostile
	for _, f := range files {
		value := f.file
		exit := f.exit
		if exit == nil {
			exit = []int{1, 2}
		}
		args := []string{"ingest", "log", "--format", "litellm", "--out", "lake", "--keys", keys, "-q"}
		if f.flag == "--template" {
			value = "jinja:" + f.file
			if text, ok := f.content.(string); ok {
				f.content = `{% for m in messages %}{{ m.content[:1] }}{% endfor %}` + text // else it is no chat template
			}
			args = append(args, "--tokenizer", "chars4")
			exit = append(exit, 0) // a template that gives up on a prompt costs its blocks alone
		}
		h := hostile{name: f.name, files: map[string]any{"log": prompt}, args: append(args, f.flag, value), exit: exit, leaves: []string{"lake"}, mib: 512}
		if !filepath.IsAbs(f.file) {
			h.files[f.file] = f.content
		}
		cases = append(cases, h)
	}
	survives(t, cases)
}

// TestHostileTraces: interchange formats, results of other tools and what lies beside them.
func TestHostileTraces(t *testing.T) {
	row := `{"timestamp":%d,"input_length":8,"output_length":2,"hash_ids":[1]}` + "\n"
	good := fmt.Sprintf(row, 0) + fmt.Sprintf(row, 1000)
	mib := size(80, 1024)
	azure := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	burst := "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	files := []struct {
		name    string
		content any
	}{
		{"a line without end", repeated(good+`{"timestamp":5,"x":"`, strings.Repeat("a", 1<<20), mib, "")},
		{"brackets", good + strings.Repeat("[", 16<<20) + "\n"},
		{"nested values", good + `{"timestamp":2000,"input_length":8,"x":` + deep(1_000_000) + "}\n"},
		{"ids without end", repeated(good+`{"timestamp":2000,"input_length":8,"output_length":2,"hash_ids":[`, "1,", 8_000_000, "1]}\n")},
		{"a length of 2^62", good + `{"timestamp":2000,"input_length":4611686018427387904,"output_length":2}` + "\n"},
		{"a length of 2^31", good + `{"timestamp":2000,"input_length":2147483647,"output_length":2147483647}` + "\n"},
		{"a stamp of 1e999999", good + `{"timestamp":1e999999,"input_length":8,"output_length":2}` + "\n"},
		{"a stamp of many digits", good + `{"timestamp":1` + strings.Repeat("0", 1<<20) + `,"input_length":8,"output_length":2}` + "\n"},
		{"stamps that lie far apart", good + `{"timestamp":9e15,"input_length":8,"output_length":2}` + "\n"},
		{"members repeated", repeated(good+`{"timestamp":2000,"input_length":8,"output_length":2`, `,"input_length":8`, 1_000_000, "}\n")},
		{"a gzip bomb", packed("gzip", repeated(good+`{"x":"`, strings.Repeat("a", 1<<20), size(100, 4096), ""))},
		{"a zstd bomb", packed("zstd", repeated(good+`{"x":"`, strings.Repeat("a", 1<<20), size(100, 4096), ""))},
		{"newlines", repeated(good, strings.Repeat("\n", 1<<20), size(20, 1024), "")},
		{"NULs", repeated(good, strings.Repeat("\x00", 1<<20), mib, "")},
		{"broken UTF-8", good + "{\"timestamp\":2000,\"input_length\":8,\"output_length\":2,\"session_id\":\"\xff\xfe\"}\n"},
		{"a cell without end", repeated(azure+"2024-05-10 00:00:00.009930+00:00,", strings.Repeat("9", 1<<20), mib, "")},
		{"quotes without end", repeated(azure+"\"", strings.Repeat("a\n", 1<<19), mib, "")},
		{"cells without end", repeated(burst+"5,ChatGPT,1,2,3,x", ",", 20<<20, "\n")},
		{"columns without end", repeated("Timestamp", ",Timestamp", 2_000_000, "\n1\n")},
		{"broken rows", repeated(good, "{\"timestamp\":-1}\n", size(200_000, 5_000_000), "")},
		{"nothing", ""},
	}
	commands := []struct {
		name string
		args []string
	}{
		{"check", []string{"trace", "check", "t.jsonl"}},
		{"convert", []string{"trace", "convert", "t.jsonl", "-o", "out.jsonl"}},
		{"profile", []string{"profile", "t.jsonl", "-q", "-o", "out"}},
		{"replay", []string{"replay", "t.jsonl", "--dry-run"}},
		{"analyze", []string{"analyze", "t.jsonl"}},
	}
	var cases []hostile
	for i, c := range commands {
		for k, f := range files {
			if !proving() && i > 0 && k%4 != i%4 {
				continue
			}
			h := hostile{name: c.name + ", " + f.name, files: map[string]any{"t.jsonl": f.content}, args: c.args,
				exit: []int{0, 1, 2, 6}, leaves: []string{"out", "out*"}, mib: 640, cpu: time.Duration(size(4, 120)) * time.Second}
			cases = append(cases, h)
		}
	}
	survives(t, cases)
}

// TestHostileFolders: what lies in a lake, a run, a profile or beside a trace and is read whole.
func TestHostileFolders(t *testing.T) {
	trace := `{"timestamp":0,"input_length":8,"output_length":2,"hash_ids":[1]}` + "\n"
	contents := []struct {
		name    string
		content any
	}{
		{"too large", repeated(`{"x":"`, strings.Repeat("a", 1<<20), size(80, 1024), `"}`)},
		{"nested", strings.Repeat(`{"a":`, 1<<20)},
		{"numbers", `{"version":1e999999,"block_size":1e999,"seed":` + strings.Repeat("9", 1<<20) + `}`},
		{"another type", `[[[[null]]]]`},
		{"NULs", strings.Repeat("\x00", 1<<20)},
		{"names that lead elsewhere", `{"version":1,"files":[{"name":"../../../../etc/passwd","sha256":"00"}]}`},
		{"half", `{"version":1,"files":[{"na`},
	}
	places := []struct {
		name, file string
		more       map[string]any
		args       []string
	}{
		{"sidecar", "t.jsonl.meta.json", map[string]any{"t.jsonl": trace}, []string{"trace", "check", "t.jsonl"}},
		{"manifest of a run", "run/manifest.json", map[string]any{"run/x": ""}, []string{"analyze", "run"}},
		{"manifest of a profile", "profile/manifest.json", nil, []string{"profile", "show", "profile"}},
		{"envelope", "envelope.yaml", nil, []string{"envelope", "diff", "envelope.yaml", "envelope.yaml"}},
		{"manifest of a test", "test/manifest.json", map[string]any{"test/envelope.yaml": "x"}, []string{"envelope", "headroom", "test", "test"}},
		{"state of a day", "lake/day=2026-03-04/manifest.json", nil, []string{"publish", "lake", "--day", "2026-03-04"}},
		{"a log of destroyed keys", "keys/destroyed.jsonl", nil, []string{"keys", "list", "--keys", "keys"}},
	}
	var cases []hostile
	for _, p := range places {
		for _, c := range contents {
			h := hostile{name: p.name + ", " + c.name, files: map[string]any{p.file: c.content}, args: p.args, exit: []int{0, 1, 2, 4, 6, 7}, mib: 512, leaves: []string{"lake"}}
			for name, content := range p.more {
				h.files[name] = content
			}
			cases = append(cases, h)
		}
	}
	survives(t, cases)
}
