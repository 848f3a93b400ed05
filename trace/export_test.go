package trace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

var day = time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)

// request is a lake row that reached the engine; ids are its shared 16-token blocks.
func request(key int64, at time.Duration, input int32, ids ...int64) schemas.Request {
	full, tail := input/16, input%16
	return schemas.Request{
		RequestKey: key, ArrivedAt: day.Add(at), TimeResolutionUs: 1000, Op: schemas.OpChat, Status: schemas.StatusOK,
		ReachedEngine: true, SampledFraction: 1, Model: "m", Class: ptr("chat"), InputTokens: &input, OutputTokens: ptr(int32(5)),
		HashIDs: append([]int64{}, ids...), PrivateBlocks: max(0, full-int32(len(ids))), TailTokens: tail,
	}
}

func lake(t *testing.T, rows ...schemas.Request) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "day=2026-09-01")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	footer := schemas.Footer{Schema: schemas.TableRequests, Tokenizer: "o200k", Epoch: "e7"}.Map()
	if err := parquetio.WriteFile(filepath.Join(dir, "part.parquet"), footer, rows); err != nil {
		t.Fatal(err)
	}
	return root
}

func exportDay(ctx context.Context, root string, o trace.ExportOptions) (*trace.Trace, error) {
	s, err := trace.ExportStream(ctx, root, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Load(ctx)
}

func export(t *testing.T, root string, o trace.ExportOptions) *trace.Trace {
	t.Helper()
	o.Day = "2026-09-01"
	tr, err := exportDay(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	if faults := tr.Check(); faults != nil {
		t.Fatalf("an exported trace is broken: %v", faults)
	}
	return tr
}

func seq(from, n int64) []int64 {
	var out []int64
	for i := range n {
		out = append(out, from+i)
	}
	return out
}

func TestExportDerivesWholeBlocks(t *testing.T) {
	shared := seq(100, 70) // 1,120 shared tokens: blocks of 512 end at the ids 131 and 163
	tail := append(seq(100, 33), 500)
	root := lake(t,
		request(1, 1*time.Second, 1536, shared...),                   // third block private
		request(2, 2*time.Second, 1120, shared...),                   // tail of 96 tokens: all of it shared
		request(3, 3*time.Second, 533, tail...),                      // partial 16-block at the end, shared
		request(4, 4*time.Second, 533, seq(100, 33)...),              // the same, private tail
		request(5, 5*time.Second, 40),                                // nothing shared
		request(6, 6*time.Second, 0),                                 // no prompt
		request(1, 7*time.Second, 1536, shared...),                   // the same key once more
		request(7, 8*time.Second, 512, append(seq(100, 31), 900)...), // exactly one block
	)
	tr, err := exportDay(t.Context(), root, trace.ExportOptions{Day: "2026-09-01"})
	if err != nil {
		t.Fatal(err)
	}
	got := make([][]int64, len(tr.Rows))
	private := map[int64]int{}
	for i := range tr.Rows {
		for _, id := range tr.Rows[i].HashIDs {
			if id > 1000 {
				private[id]++
				id = -1
			}
			got[i] = append(got[i], id)
		}
	}
	want := [][]int64{{131, 163, -1}, {131, 163, 169}, {131, 500}, {131, -1}, {-1}, nil, {131, 163, -1}, {900}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(private) != 4 {
		t.Errorf("private ids %v, want four of one use", private)
	}
	if tr.Rows[5].HashIDs == nil || tr.Meta.BlockSize != 512 || tr.Meta.Tokenizer != "o200k" || tr.Meta.Epoch != "e7" || tr.Meta.SHA256 == "" {
		t.Errorf("%+v", tr.Meta)
	}
	again, err := exportDay(t.Context(), root, trace.ExportOptions{Day: "2026-09-01", Seed: 9})
	if err != nil || !cmp.Equal(tr.Rows, again.Rows) {
		t.Errorf("ids depend on more than the rows: %v", err)
	}
	small, err := exportDay(t.Context(), root, trace.ExportOptions{Day: "2026-09-01", BlockSize: 16})
	if err != nil || !cmp.Equal(small.Rows[1].HashIDs, shared) || len(small.Rows[0].HashIDs) != 96 {
		t.Errorf("block size 16: %v", err)
	}
}

func views(t *testing.T) string {
	rows := []schemas.Request{
		request(1, 10*time.Second, 16), request(2, 11*time.Second, 16), request(3, 12*time.Second, 16), request(4, 13*time.Second, 16),
		request(5, 14*time.Second, 16), request(6, 15*time.Second, 16),
	}
	rows[1].Attempt, rows[1].Status, rows[1].OutputTokens = 1, schemas.StatusTimeout, ptr(int32(3))
	rows[2].ReachedEngine, rows[2].Status = false, schemas.StatusRateLimited
	rows[3].IsProbe = true
	rows[4].Op = schemas.OpEmbedding
	rows[5].Class, rows[5].Op, rows[5].HashIDs, rows[5].InputTokens, rows[5].PrivateBlocks = ptr("batch"), schemas.OpResponses, nil, nil, 0
	return lake(t, rows...)
}

func TestExportViews(t *testing.T) {
	root := views(t)
	engine := export(t, root, trace.ExportOptions{})
	client := export(t, root, trace.ExportOptions{View: trace.ViewClient})
	source := func(tr *trace.Trace) (out []int64) {
		for i := range tr.Rows {
			out = append(out, tr.Rows[i].SourceRow)
		}
		return out
	}
	if diff := cmp.Diff([]int64{0, 1, 5}, source(engine)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{0, 2, 5}, source(client)); diff != "" {
		t.Error(diff)
	}
	if r := engine.Rows[1]; *r.Status != schemas.StatusTimeout || r.OutputTokens != nil || engine.Rows[0].Status != nil {
		t.Errorf("the failed row is %+v", r)
	}
	if r := engine.Rows[2]; r.HashIDs != nil || r.InputTokens != 16 {
		t.Errorf("the row of unknown length is %+v", r)
	}
	notes := strings.Join(engine.Notes, "\n")
	for _, want := range []string{"1 probes", "1 requests that are neither chat", "1 requests never reached", "1 requests have no known input"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	if got := export(t, root, trace.ExportOptions{Classes: []string{"batch"}}); len(got.Rows) != 1 || got.Rows[0].ScheduledUs != 5_000_000 || got.LengthUs() != 5_000_000 {
		t.Errorf("%+v", got)
	}
}

func TestExportWindow(t *testing.T) {
	root := views(t)
	tr := export(t, root, trace.ExportOptions{Window: trace.Window{From: 9 * time.Second, To: 13 * time.Second}})
	if diff := cmp.Diff([]int64{1_000_000, 2_000_000}, stamps(tr)); diff != "" {
		t.Error(diff)
	}
	if tr.LengthUs() != 4_000_000 || !tr.Meta.StartedAt.Equal(day.Add(9*time.Second)) {
		t.Errorf("%+v", tr.Meta)
	}
	if whole := export(t, root, trace.ExportOptions{}); !whole.Meta.StartedAt.Equal(day.Add(10*time.Second)) || whole.LengthUs() != 5_000_000 {
		t.Errorf("%+v", whole.Meta)
	}
	path := filepath.Join(t.TempDir(), "w.jsonl")
	if err := tr.WriteFile(path, "", "v1"); err != nil {
		t.Fatal(err)
	}
	back, err := trace.Load(t.Context(), path, trace.Options{})
	if err != nil || !cmp.Equal(tr.Rows, back.Rows) || back.LengthUs() != 4_000_000 || !back.Meta.StartedAt.Equal(tr.Meta.StartedAt) {
		t.Errorf("the file has another clock: %v\n%s", err, cmp.Diff(tr.Rows, back.Rows))
	}
}

func TestExportLinksTurns(t *testing.T) {
	rows := []schemas.Request{
		request(1, 1*time.Second, 16), request(2, 2*time.Second, 16), request(3, 3*time.Second, 16), request(4, 4*time.Second, 16),
		request(5, 5*time.Second, 16), request(6, 6*time.Second, 16), request(7, 7*time.Second, 16),
	}
	for i, turn := range []int32{0, 1, 1, 2, 1} {
		rows[i].Session, rows[i].Turn = ptr("s_1"), &turn
	}
	rows[5].Session, rows[6].Session = ptr("s_2"), ptr("s_2")
	tr := export(t, lake(t, rows...), trace.ExportOptions{Window: trace.Window{From: time.Second}})
	var got [][2]int64
	for i := range tr.Rows {
		p := int64(-1)
		if tr.Rows[i].Parent != nil {
			p = *tr.Rows[i].Parent
		}
		got = append(got, [2]int64{int64(tr.Rows[i].Turn), p})
	}
	if diff := cmp.Diff([][2]int64{{0, -1}, {1, 0}, {1, 0}, {2, 2}, {1, 0}, {0, -1}, {1, 5}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestExportSpreadsCoarseClocks(t *testing.T) {
	var rows []schemas.Request
	for i := range int64(400) {
		r := request(i, time.Duration(i/10)*time.Second, int32(i)+1)
		r.TimeResolutionUs = 1_000_000
		rows = append(rows, r)
	}
	tr := export(t, lake(t, rows...), trace.ExportOptions{Seed: 4})
	for i := range tr.Rows {
		if tr.Rows[i].InputTokens != int32(i)+1 || tr.Rows[i].ScheduledUs/1_000_000 != int64(i/10) {
			t.Fatalf("row %d left its second or its order: %+v", i, tr.Rows[i])
		}
	}
	if info := tr.Info(); info.MaxTied > 2 || !info.Spread || info.QuantumUs != 1_000_000 {
		t.Errorf("%+v", info)
	}
}

func TestExportFaults(t *testing.T) {
	root := views(t)
	for _, tt := range []struct {
		o    trace.ExportOptions
		want string
	}{
		{trace.ExportOptions{Day: "1 Sep", View: "x", BlockSize: 100}, "multiple of 16"},
		{trace.ExportOptions{Day: "2026-09-02"}, "no such day"},
		{trace.ExportOptions{Day: "2026-09-01", Window: trace.Window{From: time.Hour}}, "from 10s to 15s after midnight"},
		{trace.ExportOptions{Day: "2026-09-01", Classes: []string{"agent"}}, `no row has class "agent"`},
	} {
		if _, err := exportDay(t.Context(), root, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) || fault.Of(err) != fault.Usage {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	data := func(root, want string) {
		t.Helper()
		if _, err := exportDay(t.Context(), root, trace.ExportOptions{Day: "2026-09-01"}); err == nil || !strings.Contains(err.Error(), want) || fault.Of(err) != fault.Data {
			t.Errorf("%v, want %q", err, want)
		}
	}
	bad := request(1, 0, 100, 1, 2)
	bad.PrivateBlocks++
	data(lake(t, bad), "row 0: 2 hash_ids, 5 private_blocks and 4 tail_tokens do not make 100 input_tokens")
	data(lake(t), "view holds no request")
	dir := filepath.Join(root, "day=2026-09-01")
	if err := os.WriteFile(filepath.Join(dir, "second.parquet"), []byte("PAR1tttPAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	data(root, "exactly one")
	if err := os.Remove(filepath.Join(dir, "part.parquet")); err != nil {
		t.Fatal(err)
	}
	data(root, "not a readable Parquet file")
}
