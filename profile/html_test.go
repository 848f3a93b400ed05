package profile_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

func pageOf(t testing.TB, p *profile.Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	exactValue  = regexp.MustCompile(`<data value="([^"]*)">`)
	foldedTable = regexp.MustCompile(`(?s)(</summary>)<div class="scroll">.*?</div>`)
	pageStyle   = regexp.MustCompile(`(?s)<style>.*?</style>`)
	drawnSVG    = regexp.MustCompile(`(?s)<svg.*?</svg>`)
	infinite    = regexp.MustCompile(`NaN|[+-]?\bInf\b`)
)

// pageRows gives the rows of every table of a section, each as its exact figures with a space between.
func pageRows(t *testing.T, page, section string) map[string]bool {
	t.Helper()
	_, rest, found := strings.Cut(page, `<section id="`+section+`">`)
	if !found {
		t.Fatalf("no section %s", section)
	}
	rest, _, _ = strings.Cut(rest, "</section>")
	out := map[string]bool{}
	for _, row := range strings.Split(rest, "<tr>")[1:] {
		var values []string
		for _, m := range exactValue.FindAllStringSubmatch(row, -1) {
			values = append(values, m[1])
		}
		out[strings.Join(values, " ")] = true
	}
	return out
}

// figures writes values as the page does; what is not known has no figure.
func figures(values ...any) string {
	var out []string
	for _, v := range values {
		switch v := v.(type) {
		case *float64:
			if v != nil {
				out = append(out, strconv.FormatFloat(*v, 'g', -1, 64))
			}
		case float64:
			out = append(out, strconv.FormatFloat(v, 'g', -1, 64))
		default:
			out = append(out, fmt.Sprint(v))
		}
	}
	return strings.Join(out, " ")
}

func TestPageGolden(t *testing.T) {
	got := pageOf(t, compute(t, fixture(1), profile.Options{PerGroup: true}))
	got = exactValue.ReplaceAllString(got, "<data>") // their last digits are the machine's
	got = foldedTable.ReplaceAllString(got, "$1")    // see TestPageHasEveryNumber
	got = pageStyle.ReplaceAllString(got, "<style></style>")
	path := filepath.Join("testdata", "fixture.html")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestPageHasEveryNumber(t *testing.T) {
	p := compute(t, fixture(1), profile.Options{PerGroup: true})
	page := pageOf(t, p)
	seen := map[string]map[string]bool{}
	checked := map[string]int{}
	want := func(section string, key schemas.ProfileKey, values ...any) {
		t.Helper()
		if key.Tenant != profile.All {
			return
		}
		if seen[section] == nil {
			seen[section] = pageRows(t, page, section)
		}
		checked[section]++
		if row := figures(values...); !seen[section][row] {
			t.Errorf("section %s has no row %q", section, row)
		}
	}
	for _, r := range p.Rate {
		if r.BinUs == 60_000_000 { // half an hour: shown by minutes
			want("rate", r.ProfileKey, r.BinStartUs/1_000_000, r.Requests, r.Errors, r.SessionsStarted, r.TokensIn, r.TokensOut)
		}
	}
	for _, g := range p.IAT {
		want("gaps", g.ProfileKey, g.N, g.MeanS, g.MinS, g.P50S, g.P90S, g.P99S, g.MaxS, g.ZeroFrac, g.CVRaw, g.CVLo, g.CVHi, g.CVOp60, g.CVOp300)
		for i, v := range g.ACF {
			want("gaps", g.ProfileKey, i+1, v)
		}
	}
	for _, f := range p.IATFit {
		want("gaps", f.ProfileKey, f.P1, f.P1Lo, f.P1Hi, f.P2, f.P3, f.LogLik, f.BIC, f.KS)
	}
	for _, d := range p.Dispersion {
		want("idc", d.ProfileKey, float64(d.ScaleUs)/1e6, d.Windows, d.Mean, d.Var, d.IDC, d.IDCLo, d.IDCHi, d.PeakToMean)
	}
	for _, l := range p.Lengths {
		want("lengths", l.ProfileKey, l.LoTok, l.HiTok, l.N)
	}
	for _, j := range p.Joint { // within one hour, so that no cells are put together
		want("joint", j.ProfileKey, j.InLo, j.InHi, j.OutLo, j.OutHi, j.N)
	}
	for _, j := range p.JointStat {
		want("joint", j.ProfileKey, j.N, j.Spearman, j.MINats, j.MIGaussNats, j.SpearmanRateOut)
	}
	wantSessions(p, want)
	for _, h := range p.HitCurve {
		if h.CapacityBlocks != nil {
			want("hits", h.ProfileKey, *h.CapacityBlocks, h.BlockHit, h.BlockHitError, h.TokenHit, h.RequestMeanHit, h.SampleRate)
		} else {
			want("hits", h.ProfileKey, h.BlockHit, h.BlockHitError, h.TokenHit, h.RequestMeanHit, h.SampleRate)
		}
	}
	for _, r := range p.Reuse {
		scale := map[string]float64{profile.UnitRequests: 1, profile.UnitUs: 1e6}[r.Unit]
		want("reuse", r.ProfileKey, float64(r.Lo)/scale, float64(r.Hi)/scale, r.N, r.NError)
	}
	for _, b := range p.Bursts {
		want("bursts", b.ProfileKey, b.Rank, float64(b.StartUs)/1e6, float64(b.LengthUs)/1e6, b.Requests, b.Expected, b.TokensIn, b.TokensOut, b.LongShare)
	}
	for _, section := range []string{"rate", "gaps", "idc", "lengths", "joint", "turns", "turn-gaps", "growth", "hits", "reuse", "bursts"} {
		if checked[section] == 0 {
			t.Errorf("no number of %s was checked", section)
		}
	}
}

func wantSessions(p *profile.Profile, want func(section string, key schemas.ProfileKey, values ...any)) {
	for _, s := range p.Sessions {
		want("turns", s.ProfileKey, s.Turns, s.Sessions)
	}
	for _, s := range p.SessionStat {
		want("turns", s.ProfileKey, s.Sessions, s.Turns, s.MultiTurn, s.LaterTurns, s.NegativeGrowth, s.Branches, s.Carry)
	}
	for _, s := range p.SessionGap {
		want("turn-gaps", s.ProfileKey, float64(s.LoUs)/1e6, float64(s.HiUs)/1e6, s.N)
	}
	for _, g := range p.Growth {
		want("growth", g.ProfileKey, g.LoTok, g.HiTok, g.N)
	}
}

// TestPageShowsLatencies: the quantiles of a lake's latencies stand on the page, per class and range of input lengths, and
// a page of a trace says that it has none.
func TestPageShowsLatencies(t *testing.T) {
	p := profileOf(t, readLake(t, writeLake(t, lakeRows(3, 900, 1)), profile.LakeOptions{BlockSize: 16}), profile.Options{})
	seen := pageRows(t, pageOf(t, p), "latency")
	type part struct {
		class, dim string
		lo, hi     int32
	}
	bins := map[part][]schemas.ProfileLatency{}
	for _, r := range p.Latency {
		k := part{r.Class, r.Dim, r.InLo, r.InHi}
		bins[k] = append(bins[k], r)
	}
	if len(bins) < 12 {
		t.Fatalf("%d parts", len(bins))
	}
	for k, rows := range bins {
		n := int64(0)
		for _, r := range rows {
			n += r.N
		}
		values := []any{k.lo, k.hi, n}
		if k.hi == math.MaxInt32 {
			values = []any{k.lo, n}
		}
		for _, percent := range []int64{50, 90, 95, 99} {
			below := int64(0)
			for _, r := range rows {
				if below += r.N; 100*below >= percent*n {
					values = append(values, float64(r.HiUs)/1e6)
					break
				}
			}
		}
		if row := figures(values...); !seen[row] {
			t.Errorf("%+v: no row %q", k, row)
		}
	}
	if !strings.Contains(pageOf(t, compute(t, fixture(1), profile.Options{})), "No latencies") {
		t.Error("the page of a trace does not say that it has no latencies")
	}
}

// TestPageShowsWhatASampleLeaves: the error of a sampled hit curve stands in the drawing and beside the figures.
func TestPageShowsWhatASampleLeaves(t *testing.T) {
	p := compute(t, fixture(1), profile.Options{})
	const says = "From a sample of"
	if strings.Contains(pageOf(t, p), says) {
		t.Error("an exact curve is called a sample")
	}
	for i := range p.HitCurve {
		p.HitCurve[i].SampleRate, p.HitCurve[i].BlockHitError = ptr(.125), ptr(.0123)
	}
	page := pageOf(t, p)
	_, hits, _ := strings.Cut(page, `<section id="hits">`)
	hits, _, _ = strings.Cut(hits, "</section>")
	if !strings.Contains(hits, says) || strings.Count(hits, `class="whisker`) != len(p.HitCurve)-1 || !strings.Contains(hits, `value="0.0123"`) {
		t.Errorf("the sample or its error is not told:\n%s", hits)
	}
}

// The page is one file: nothing is fetched, nothing runs, every drawing is well formed, and names stay text.
func TestPageStandsAlone(t *testing.T) {
	tr := fixture(1)
	evil := `<script>alert("x")</script>&'`
	for i := range tr.Rows {
		tr.Rows[i].Tenant, tr.Rows[i].Class, tr.Rows[i].Model = &evil, &evil, &evil
	}
	tr.Meta.Tokenizer = evil
	page := pageOf(t, compute(t, tr, profile.Options{PerGroup: true}))
	for _, bad := range []string{"<script", "http:", "https:", "src=", "href=", "@import", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, "&lt;script&gt;alert") {
		t.Error("the names are not in the page")
	}
	drawings := drawnSVG.FindAllString(page, -1)
	if len(drawings) != 13 {
		t.Errorf("%d drawings, want 13", len(drawings))
	}
	for _, s := range drawings {
		d := xml.NewDecoder(strings.NewReader(s))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("a drawing is not well formed: %v", err)
			}
		}
	}
}

func TestPageIsTheSameFromDisk(t *testing.T) {
	p := compute(t, fixture(1), profile.Options{PerGroup: true})
	dir := t.TempDir()
	if _, err := p.Write(dir, schemas.Footer{}); err != nil {
		t.Fatal(err)
	}
	read, err := profile.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(pageOf(t, p), "\n"), strings.Split(pageOf(t, read), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestPageSaysWhatIsMissing(t *testing.T) {
	failed := func(us int64) schemas.TraceRow {
		return schemas.TraceRow{ScheduledUs: us, InputTokens: 10, Status: ptr(schemas.StatusServerError)}
	}
	cases := []struct {
		name  string
		trace *trace.Trace
		says  []string
	}{
		{"empty", traceOf(), []string{"no requests: nothing to profile"}},
		{"one row", traceOf(request(0, 5, 6)), []string{"No gaps: fewer than two requests", "No burst windows", "No dispersion", "No growth", "No times between turns", "No hit curve", "No reuse", "No rate by hour of day"}},
		{"zero lengths", traceOf(request(0, 0, 0), request(1, 0, 0)), []string{"No dispersion"}},
		{"equal stamps", traceOf(request(7, 5, 6), request(7, 5, 6), request(7, 5, 6)), []string{"one instant", "No distribution: every gap is below", "No laws"}},
		{"only failures", traceOf(failed(0), failed(2_000_000), failed(3_000_000)), []string{"No lengths: every request failed", "No joint lengths"}},
		{"equal gaps", traceOf(request(0, 1, 1), request(1_000_000, 1, 1), request(2_000_000, 1, 1)), []string{"No rate by hour of day"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, perGroup := range []bool{false, true} {
				page := pageOf(t, compute(t, c.trace, profile.Options{PerGroup: perGroup}))
				for _, says := range c.says {
					if !strings.Contains(page, says) {
						t.Errorf("the page does not say %q", says)
					}
				}
				if bad := infinite.FindString(page); bad != "" {
					t.Errorf("the page has %s", bad)
				}
				if !perGroup && len(c.trace.Rows) > 0 && !strings.Contains(page, "No groups") {
					t.Error("the page does not say that groups are missing")
				}
			}
		})
	}
}

// Burst windows count from the schedule's zero and the rate from window_start: 10:00 for a trace that starts at 10:03.
func TestBurstWindowsStandAtTheirTime(t *testing.T) {
	p := compute(t, fixture(1), profile.Options{})
	p.Bursts = []schemas.ProfileBurst{{ProfileKey: p.Meta[0].ProfileKey, Rank: 1, StartUs: 840_000_000, LengthUs: 60_000_000, Requests: 151}}
	band := regexp.MustCompile(`<rect class="band" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"`)
	found := band.FindStringSubmatch(pageOf(t, p))
	if found == nil {
		t.Fatal("no burst window is marked")
	}
	// Minutes 3 to 36 have requests, as points at 3.5 to 36.5 over the 468 wide axis from 58 on.
	at, _ := strconv.ParseFloat(found[1], 64)
	if want := 58 + (17-3.5)/(36.5-3.5)*468; at < want-.2 || at > want+.2 {
		t.Errorf("the window is drawn at %v, want %v", at, want)
	}
	p.Meta[0].OriginUs = nil
	if page := pageOf(t, p); band.MatchString(page) || !strings.Contains(page, "Burst windows are not marked") {
		t.Error("windows of an unknown clock are marked, or nothing is said")
	}
}

func TestHoursOfTwoDays(t *testing.T) {
	var rows []schemas.TraceRow
	for hour := range int64(48) { // hour h of each day has h+1 requests, all in its first minutes
		for k := range hour%24 + 1 {
			rows = append(rows, request(hour*3_600_000_000+k*1_000_000, 10, 2))
		}
	}
	rows = append(rows, request(48*3_600_000_000-1, 10, 2))
	tr := traceOf(rows...)
	tr.Meta.StartedAt = time.Date(2026, 9, 1, 6, 0, 0, 0, time.UTC)
	seen := pageRows(t, pageOf(t, compute(t, tr, profile.Options{})), "hours")
	for h := range 24 {
		n := 2 * (h + 1)
		if h == 23 {
			n++ // the last request
		}
		if want := figures((h+6)%24, 120, n, float64(n)/120, 10*n, 2*n); !seen[want] {
			t.Errorf("no row %q in %v", want, seen)
		}
	}
}

// Of a merged profile, what does not add up is told of the newest window, and the page says which.
func TestPageOfSeveralWindows(t *testing.T) {
	p := compute(t, fixture(1), profile.Options{})
	old, key := compute(t, fixture(2), profile.Options{}), p.Meta[0].ProfileKey
	key.WindowStart, key.WindowEnd = key.WindowStart.AddDate(0, 0, -1), key.WindowEnd.AddDate(0, 0, -1)
	for i := range old.Dispersion {
		old.Dispersion[i].ProfileKey = key
	}
	old.IAT[0].ProfileKey, old.SessionStat[0].ProfileKey = key, key
	whole := pageOf(t, p)
	want := pageRows(t, whole, "idc")
	p.Dispersion, p.IAT, p.SessionStat = append(old.Dispersion, p.Dispersion...), append(p.IAT, old.IAT...), append(old.SessionStat, p.SessionStat...)
	p.Meta[0].WindowStart = key.WindowStart
	page := pageOf(t, p)
	if diff := cmp.Diff(want, pageRows(t, page, "idc")); diff != "" {
		t.Errorf("the dispersion is not that of the newest window:\n%s", diff)
	}
	const says = "is of the newest, 2026-09-01 10:00 UTC to"
	if !strings.Contains(page, says) || strings.Contains(whole, says) {
		t.Error("the page does not say which window it shows")
	}
}

// A bin twice as wide on the axis stands half as high: lengths spread evenly over the octaves are drawn level, although
// the table's bins change their width at each power of two.
func TestLengthBinsAreDrawnLevel(t *testing.T) {
	var rows []schemas.TraceRow
	const n = 40_000
	for i := range n {
		rows = append(rows, request(int64(i)*1000, int32(64*math.Exp2(8*float64(i)/n)), 1))
	}
	page := pageOf(t, compute(t, traceOf(rows...), profile.Options{}))
	_, page, _ = strings.Cut(page, `<section id="lengths">`)
	first, _, _ := strings.Cut(page, "</svg>")
	var heights []float64
	for _, m := range regexp.MustCompile(`class="bar s0"[^>]* height="([\d.]+)"`).FindAllStringSubmatch(first, -1) {
		h, _ := strconv.ParseFloat(m[1], 64)
		heights = append(heights, h)
	}
	slices.Sort(heights)
	if len(heights) < 100 {
		t.Fatalf("%d bars", len(heights))
	}
	if lo, hi := heights[len(heights)/4], heights[len(heights)*3/4]; hi > 1.15*lo {
		t.Errorf("the middle half of the bars is %v to %v high", lo, hi)
	}
}
