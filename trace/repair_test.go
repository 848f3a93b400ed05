package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/trace"
)

const brokenText = `{"timestamp":0,"input_length":40,"output_length":3,"hash_ids":[0,1,2]}
not json
{"timestamp":1,"input_length":0,"output_length":3,"hash_ids":[0,1]}
{"timestamp":2,"input_length":0,"output_length":3}
{"timestamp":3,"input_length":20,"output_length":3,"hash_ids":[0,1,7]}
{"timestamp":4,"input_length":60,"output_length":3,"hash_ids":[0,1]}
{"timestamp":5,"input_length":48,"output_length":3,"hash_ids":[0,1,2]}
{"timestamp":6,"input_length":10,"output_length":3,"hash_ids":[9],"session_id":"a","parent":6}
{"timestamp":7,"input_length":1`

func TestRepair(t *testing.T) {
	tr, err := trace.Read(t.Context(), strings.NewReader(brokenText), "t", trace.Options{BlockSize: 16, Lenient: true, KeepQuantum: true})
	if err != nil {
		t.Fatal(err)
	}
	mended, mends := tr.Repair()
	if bad := mended.Check(); len(bad) > 0 {
		t.Errorf("still broken: %v", bad)
	}
	var got []string
	for _, m := range mends {
		got = append(got, fmt.Sprintf("%d %s %s", m.Line, m.Rule, m.Done))
	}
	want := []string{
		"1 one_size the id gets a number of its own here",
		"2 readable left out",
		"3 input_length set to 32, what its hash ids hold",
		"4 input_length left out",
		"5 block_count the last 1 ids are cut off",
		"5 one_size the id gets a number of its own here",
		"6 block_count 2 ids of its own are added",
		"8 parent the row has no parent any more",
		"9 readable left out",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(mended.Rows) != 6 {
		t.Errorf("%d rows are left", len(mended.Rows))
	}
	if _, again := mended.Repair(); len(again) > 0 {
		t.Errorf("mended twice: %v", again)
	}
}

// A row that is left out leaves nothing behind for the row in its place.
func TestIDsOfUnreadRowsAreForgotten(t *testing.T) {
	const text = `{"timestamp":0,"input_length":40,"output_length":3,"hash_ids":[1,2,18446744073709551615]}
{"chat_id":1,"parent_chat_id":-1,"timestamp":1,"input_length":16,"output_length":3,"hash_ids":[7]}
{"chat_id":2,"parent_chat_id":-1,"timestamp":2,"input_length":16,"output_length":3,"hash_ids":[18446744073709551614]}
`
	tr, err := trace.Read(t.Context(), strings.NewReader(text), "t", trace.Options{Format: trace.FormatBailian, Lenient: true, KeepQuantum: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Unread) != 1 || len(tr.Rows) != 2 || tr.Rows[0].HashIDs[0] != 7 || tr.Rows[1].HashIDs[0] != 0 {
		t.Errorf("%d left out, rows %+v", len(tr.Unread), tr.Rows)
	}
}

// TestRepairAlwaysMends breaks rows at random.
func TestRepairAlwaysMends(t *testing.T) {
	for seed := range uint64(200) {
		r := rng.New(seed, "break")
		tr := chats(r, 20, 16)
		for range 1 + r.IntN(10) {
			row := &tr.Rows[r.IntN(len(tr.Rows))]
			switch r.IntN(5) {
			case 0:
				row.InputTokens = int32(r.IntN(40)) - 2
			case 1:
				row.HashIDs = row.HashIDs[:r.IntN(len(row.HashIDs)+1)]
			case 2:
				row.HashIDs = append(row.HashIDs, int64(r.IntN(10)))
			case 3:
				row.OutputTokens = ptr(int32(-1))
			case 4:
				row.Parent = ptr(r.Int64N(100) - 10)
			}
		}
		mended, mends := tr.Repair()
		if bad := mended.Check(); len(bad) > 0 {
			t.Fatalf("seed %d: %v", seed, bad[0])
		}
		if len(mends) == 0 && len(tr.Check()) > 0 {
			t.Fatalf("seed %d: nothing is told", seed)
		}
	}
}
