package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tornFile is a Parquet file that commands read, and the commands, run in the folder of it all.
type tornFile struct {
	path     string // pattern; the last one is torn
	commands []string
}

var tornFiles = []tornFile{
	{"lake/day=*/requests.parquet", []string{
		"profile lake -o OUT/p", "trace export lake --day 2026-11-28 -o OUT/t.jsonl", "cat lake --format csv -o OUT/x.csv",
		"gate init --from lake -o OUT/gate.yaml", "forget lake --tenant nobody --keys keys"}},
	{"lake/_segments/*/*/*/*.parquet", []string{"publish lake --day 2026-11-28", "cat FILE -o OUT/x.csv", "reprocess logs/litellm.jsonl --format litellm --out lake --keys keys"}},
	{"run/results.parquet", []string{
		"analyze run", "analyze run --json", "compare run run", "sim fit run", "cat run --table results -o OUT/x.jsonl",
		"analyze run --explain", "forget lake --tenant nobody --keys keys --also run"}},
	{"run/telemetry.parquet", []string{"cat FILE -o OUT/x.csv"}},
	{"day.parquet", []string{
		"trace check FILE", "trace info FILE", "trace convert FILE -o OUT/x.jsonl", "rescale FILE --scale 1.5x -o OUT/x.jsonl",
		"profile FILE -o OUT/p", "replay FILE --target sim: --out OUT/run"}},
	{"profile/profile_rate.parquet", []string{
		"profile show profile", "profile diff profile profile", "envelope headroom envelope.yaml profile", "synth profile -o OUT/x.jsonl", "profile merge profile -o OUT/p",
		"cat FILE -o OUT/x.csv"}},
	{"tables/buckets.parquet", []string{"cat FILE -o OUT/x.csv", "analyze --trend tables"}},
}

// A torn file of any kind is bad data (exit 6) to whichever command reads it, in one line that names it, and leaves
// nothing half-made; cut at its end, and damaged in the middle.
func TestTornFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	makeTornSite(t)
	for _, f := range tornFiles {
		found, err := filepath.Glob(f.path)
		if err != nil || len(found) == 0 {
			t.Fatalf("no file %s: %v", f.path, err)
		}
		file := found[len(found)-1]
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		middle := bytes.Clone(whole)
		for i := range middle[4 : len(middle)*2/3] {
			middle[4+i] ^= 0x5a
		}
		for name, data := range map[string][]byte{"cut": whole[:len(whole)-7], "damaged": middle} {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, command := range f.commands {
				if name == "damaged" && strings.HasPrefix(command, "reprocess ") {
					continue // without dead letters it reads the footers alone
				}
				t.Run(name+"/"+command, func(t *testing.T) {
					out := t.TempDir()
					args := strings.Fields(strings.NewReplacer("FILE", file, "OUT", out).Replace(command))
					r := runCLI(t, args...)
					r.plain(t, exitData, filepath.Base(file), out)
				})
			}
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// makeTornSite makes one of each in the current folder.
func makeTornSite(t *testing.T) {
	t.Helper()
	t.Setenv("TAILGATE_MIN_FREE", "1KiB")
	for _, command := range []string{
		"sample -o logs --duration 5m --rate 2/s --start 2026-11-28T18:00:00Z",
		"keys init --keys keys",
		"ingest logs/litellm.jsonl --format litellm --out lake --keys keys",
		"publish lake --day 2026-11-28 --k 1 --min-requests 1",
		"trace export lake --day 2026-11-28 -o day.jsonl.zst",
		"trace convert day.jsonl.zst -o day.parquet",
		"profile day.jsonl.zst -o profile",
		"replay day.jsonl.zst --target sim: --out run -q",
		"analyze run --parquet tables",
	} {
		if r := runCLI(t, strings.Fields(command)...); r.code != 0 {
			t.Fatalf("%s: exit %d: %s", command, r.code, r.stderr)
		}
	}
	const envelope = "definition: tailgate/1\nname: eu\ngrowth: 1.2\nreplicas: 2\nrows:\n  - {class: mix, pattern: real, load: alone, state: confirmed, safe_qps: 2}\n"
	if err := os.WriteFile("envelope.yaml", []byte(envelope), 0o600); err != nil {
		t.Fatal(err)
	}
}
