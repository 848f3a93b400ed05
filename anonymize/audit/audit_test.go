package audit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tailgate/anonymize/audit"
	"tailgate/internal/fault"
)

// canary has a quote, a line end, a letter beyond ASCII and one beyond 16 bits.
const canary = "Kestrel \"4711\"\nüber <Deck> 😀 end"

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir string, canaries ...string) *audit.Report {
	t.Helper()
	o := audit.Options{}
	for _, c := range canaries {
		o.Canaries = append(o.Canaries, []byte(c))
	}
	r, err := audit.Path(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	saysNothing(t, r, canaries)
	return r
}

// saysNothing checks that a report can be passed on.
func saysNothing(t *testing.T, r *audit.Report, canaries []string) {
	t.Helper()
	var said bytes.Buffer
	if err := r.WriteText(&said); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&said).Encode(r); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(&said, r.Err(), fault.Hint(r.Err()))
	for _, c := range canaries {
		if strings.Contains(strings.ToLower(said.String()), strings.ToLower(c[:min(len(c), 7)])) {
			t.Errorf("the report tells canary %q:\n%s", c, said.String())
		}
	}
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

func zstded(data []byte) []byte {
	z, _ := zstd.NewWriter(nil)
	return z.EncodeAll(data, nil)
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

func utf16le(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(string([]byte{byte(r), byte(r >> 8)}))
	}
	return b.String()
}

// Each spelling of a text is found, wherever it lies, in plain and in compressed files.
func TestSpellingsAreFound(t *testing.T) {
	escapes := ""
	for _, r := range "Kestrel four" {
		escapes += fmt.Sprintf(`\u%04X`, r)
	}
	percent := ""
	for _, b := range []byte("Kestrel four") {
		percent += fmt.Sprintf("%%%02x", b)
	}
	for name, tc := range map[string]struct{ canary, written string }{
		"raw":                   {canary, canary},
		"lower":                 {canary, strings.ToLower(canary)},
		"upper":                 {canary, strings.ToUpper(canary)},
		"start":                 {canary, canary[:12]},
		"JSON":                  {canary, quoted(canary)},
		"JSON in JSON":          {canary, quoted(quoted(canary))},
		"JSON in JSON in JSON":  {"Kestrel\nfour\nfive", quoted(quoted(quoted("Kestrel\nfour\nfive")))},
		"escapes":               {"Kestrel four", escapes},
		"escapes in JSON":       {"Kestrel four", quoted(escapes)},
		"some escapes":          {"Kestrel four", `Kes\u0074rel\x20f\u006fur`},
		"surrogates":            {canary, `\u00fcber \u003cDeck> \ud83d\ude00 end`},
		"base64":                {canary, base64.StdEncoding.EncodeToString([]byte(canary))},
		"base64 behind 1 byte":  {canary, base64.StdEncoding.EncodeToString([]byte("x" + canary + "yz"))},
		"base64 behind 2 bytes": {canary, base64.URLEncoding.EncodeToString([]byte("xy" + canary + "y"))},
		"hex":                   {canary, hex.EncodeToString([]byte(canary))},
		"hex, upper":            {canary, strings.ToUpper(hex.EncodeToString([]byte(canary)))},
		"URL query":             {canary, "?q=" + url.QueryEscape(canary) + "&"},
		"URL path":              {canary, url.PathEscape(canary)},
		"URL, all":              {"Kestrel four", percent},
		"UTF-16":                {"Kestrel four", utf16le("Kestrel four")},
		"HTML":                  {"<Kestrel & four>", "&lt;Kestrel &amp; four&gt;"},
		"short canary":          {"Kestrel4", "Kestrel4"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "surrogates" {
				tc.canary = "über <Deck> 😀 end"
			}
			noise := make([]byte, 700_000)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range noise {
				noise[i] = byte(r.UintN(256))
			}
			copy(noise, "log:")
			at := 256<<10 - len(tc.written)/2 // over the border of two pieces
			data := append(append(append([]byte{}, noise[:at]...), tc.written...), noise[at:]...)
			dir := t.TempDir()
			put(t, dir, "clean", noise)
			put(t, dir, "plain", data)
			put(t, dir, "packed.gz", gzipped(data))
			put(t, dir, "deep/er/.hidden", zstded(gzipped(data)))
			report := run(t, dir, "another text altogether", tc.canary)
			found := map[string]bool{}
			for _, f := range report.Findings {
				if f.Canary != 2 || f.What != audit.WhatCanary {
					t.Errorf("%+v", f)
				}
				found[f.File] = true
			}
			if len(found) != 3 || found["clean"] || report.Files != 4 || fault.Of(report.Err()) != fault.Key {
				t.Errorf("found in %v of %d files; %v", found, report.Files, report.Err())
			}
		})
	}
}

// A text is found at every place relative to the borders of pieces.
func TestBordersHideNothing(t *testing.T) {
	const piece = 256 << 10
	dir := t.TempDir()
	for i, at := range []int{0, 1, piece - 40, piece - 12, piece - 11, piece - 1, piece, piece + 1, 2*piece - 5, 3*piece - 12} {
		data := bytes.Repeat([]byte{'.'}, 3*piece)
		copy(data[at:], "Kestrel four")
		put(t, dir, fmt.Sprint(i), data)
		copy(data[at:], "............")
		copy(data[max(at-5, 0):], `Kestrel \u0066our`)
		put(t, dir, fmt.Sprint(i, " escaped"), data)
	}
	found := map[string]int64{}
	for _, f := range run(t, dir, "Kestrel four").Findings {
		found[f.File] += f.Count
	}
	if len(found) != 20 {
		t.Errorf("found in %d of 20 files: %v", len(found), found)
	}
	for name, n := range found {
		if !strings.Contains(name, "escaped") && n != 1 {
			t.Errorf("%s: found %d times", name, n)
		}
	}
}

func TestNamesAreLookedAtAndHeldBack(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "Kestrel four/clean", []byte("nothing"))
	put(t, dir, `Kestrel \u0066our`, []byte("nothing"))
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "empty", "my kestrel four"), 0o700), os.Symlink("nowhere", filepath.Join(dir, "KESTREL FOUR"))); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, f := range run(t, dir, "Kestrel four").Findings {
		if !strings.HasSuffix(f.File, "whose name is held back") {
			t.Errorf("%+v", f)
		}
		if f.What == audit.WhatCanary && f.Place == audit.PlaceName || f.Place == audit.PlaceUnescaped {
			named[strings.Fields(f.File)[0]+strings.Fields(f.File)[1]] = true
		}
	}
	if len(named) != 5 { // two files, the folder of one, an empty folder, a link
		t.Errorf("found in %v", named)
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	text := bytes.Repeat([]byte("some text of no interest "), 1000)
	for name, data := range map[string][]byte{
		"cut gzip":         gzipped(text)[:60],
		"broken zstd":      append(append([]byte{}, zstded(text)[:20]...), "garbage garbage garbage"...),
		"garbage gzip":     []byte("\x1f\x8b\x08 no gzip at all"),
		"no Parquet":       []byte("PAR1 no Parquet at all PAR1"),
		"zip":              []byte("PK\x03\x04 and so on"),
		"Parquet in gzip":  gzipped([]byte("PAR1....PAR1")),
		"five times":       gzipped(gzipped(gzipped(gzipped(gzipped(text))))),
		"behind the gzip":  append(gzipped(text), "Kestrel four"...),
		"behind the Parqu": []byte("PAR1 Kestrel four PAR1"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "a", data)
			put(t, dir, "b", text)
			report := run(t, dir, "Kestrel four")
			want := fault.Data
			if strings.HasPrefix(name, "behind") {
				want = fault.Key // both: what was found weighs more
			}
			if len(report.Unreadable) == 0 || report.Unreadable[0].File != "a" || fault.Of(report.Err()) != want {
				t.Errorf("%+v, %v", report.Unreadable, report.Err())
			}
		})
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	put(t, other, "a", []byte("Kestrel four"))
	put(t, dir, "b", []byte("nothing"))
	if err := os.Symlink(filepath.Join(other, "a"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	report := run(t, dir, "Kestrel four")
	if len(report.Findings) != 1 || report.Findings[0].What != audit.WhatLink || report.Findings[0].File != "link" {
		t.Errorf("%+v", report.Findings)
	}
}

func TestTheFileOfCanariesIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "canaries", []byte("Kestrel four\n\nanother canary\r\n"))
	f, err := os.Open(filepath.Join(dir, "canaries"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	canaries, err := audit.ReadCanaries(f)
	if err != nil || len(canaries) != 2 || string(canaries[1]) != "another canary" {
		t.Fatalf("%q, %v", canaries, err)
	}
	put(t, dir, "clean", nil)
	report, err := audit.Path(t.Context(), dir, audit.Options{Canaries: canaries, Skip: f.Name()})
	if err != nil || report.Found != 0 || report.Files != 1 || report.Err() != nil {
		t.Errorf("%+v, %v", report, err)
	}
	_, err = audit.Path(t.Context(), dir, audit.Options{Canaries: [][]byte{[]byte("long enough"), []byte("short"), []byte("")}})
	if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "canary 2 has 5 bytes") || !strings.Contains(err.Error(), "canary 3") {
		t.Errorf("short canaries: %v", err)
	}
	if _, err := audit.Path(t.Context(), filepath.Join(dir, "nosuch"), audit.Options{}); err == nil {
		t.Error("a folder that is not there was audited")
	}
	if r, err := audit.Path(t.Context(), t.TempDir(), audit.Options{}); err != nil || r.Err() == nil {
		t.Error("an empty folder passed")
	}
}

// The search finds exactly what a naive one finds.
func TestSearchAgainstANaiveOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		letters := 2 + round%4
		word := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte('1' + r.IntN(letters))
			}
			return string(b)
		}
		var canaries []string
		for range 1 + r.IntN(12) {
			canaries = append(canaries, word(8+r.IntN(4)))
		}
		text := word(20_000)
		dir := t.TempDir()
		put(t, dir, "a", []byte(text))
		got, want := map[int]int64{}, map[int]int64{}
		o := audit.Options{}
		first := map[string]int{}
		for i, c := range canaries {
			o.Canaries = append(o.Canaries, []byte(c))
			if _, ok := first[c]; ok {
				continue
			}
			first[c] = i + 1
			for at := range len(text) - len(c) + 1 {
				if strings.HasPrefix(text[at:], c) {
					want[i+1]++
				}
			}
		}
		report, err := audit.Path(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			if f.Variant == "raw" {
				got[f.Canary] += f.Count
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("round %d: found %v, want %v", round, got, want)
		}
	}
}

// A text of 64 MB that is a few kB compressed is looked at in little memory.
func TestMemoryDoesNotGrow(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	piece := bytes.Repeat([]byte("."), 1<<20)
	for range 64 {
		z.Write(piece)
	}
	z.Write([]byte("Kestrel four"))
	z.Close()
	put(t, dir, "a.zst", packed.Bytes())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	report := run(t, dir, "Kestrel four")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 || report.Found == 0 || report.Bytes > 1<<20 {
		t.Errorf("%d bytes of memory for %d on the disk; found %d", used, report.Bytes, report.Found)
	}
}

// FuzzUnescape: escapes are the same whether a text comes whole or in pieces, and what has none stays.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{`a\u00fcb`, `\ud83d\ude00`, `\\u0066`, `\x4`, `\`, `Kestrel \u0066our`, `\ud83d\u0041`} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		whole := audit.Unescape(text, len(text)+1)
		if parts := audit.Unescape(text, int(piece)%16+1); !bytes.Equal(parts, whole) {
			t.Errorf("%q in pieces is %q, whole %q", text, parts, whole)
		}
		if bytes.IndexByte(text, '\\') < 0 && !bytes.Equal(whole, text) {
			t.Errorf("%q became %q", text, whole)
		}
	})
}

// FuzzContent: no content ends the audit.
func FuzzContent(f *testing.F) {
	f.Add([]byte("\x1f\x8b"), true)
	f.Add([]byte("PAR1PAR1"), false)
	f.Add(gzipped([]byte("Kestrel four")), false)
	f.Add(zstded([]byte(`Kestrel\u0020four`)), false)
	f.Add(lakeFile(f, footer(), clean), false)
	f.Fuzz(func(t *testing.T, data []byte, cut bool) {
		dir := t.TempDir()
		if cut {
			data = data[:len(data)/2]
		}
		put(t, dir, "a", data)
		run(t, dir, "Kestrel four")
	})
}
