package audit_test

import (
	"strings"
	"testing"

	"tailgate/anonymize/audit"
	"tailgate/internal/fault"
)

// Each line of a timed trace is held to the rules of the trace table, also where it is compressed.
func TestTracesAsLines(t *testing.T) {
	const good = `{"timestamp":0,"input_length":1522,"output_length":38,"hash_ids":[6370724068078951358,2],"session_id":"s_ggzkivcphv33j",` +
		`"turn":0,"tenant":"t_lqi3kjcip7tv5","class":"agent","model":"pelican-8b","stream":true,"status":"ok","source_row":1,"damaged":true}` + "\n"
	for name, tc := range map[string]struct{ line, column string }{
		"clean":         {good, "-"},
		"tenant":        {strings.Replace(good, "t_lqi3kjcip7tv5", "harbour", 1), "tenant"},
		"class":         {strings.Replace(good, "agent", "was the lamp lit", 1), "class"},
		"model":         {strings.Replace(good, "pelican-8b", "pelican-9b", 1), "model"},
		"session":       {strings.Replace(good, "s_ggzkivcphv33j", "s_ggzkivcphv33j and more", 1), "session_id"},
		"quotes":        {strings.Replace(good, "agent", `ag\"ent`, 1), "class"},
		"string length": {strings.Replace(good, "1522", `"lamp"`, 1), "input_length"},
		"unknown key":   {strings.Replace(good, "source_row", "note", 1), "note"},
		"text as key":   {strings.Replace(good, "source_row", "Was the lamp lit?", 1), "(name held back)"},
		"cut":           {good + `{"timestamp":1,"class":"age`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			many := []byte(strings.Repeat(good, 3000) + tc.line) // over several pieces
			put(t, dir, "day.jsonl", many)
			put(t, dir, "day.jsonl.zst", zstded(many))
			report, err := audit.Path(t.Context(), dir, audit.Options{Labels: []string{"pelican-8b"}})
			if err != nil || report.Tables[audit.TableTraceLines] != 2 || report.Values < 2*5*3000 {
				t.Fatalf("%v %+v", err, report)
			}
			if tc.column == "-" {
				if report.Err() != nil {
					t.Errorf("%+v", report.Findings)
				}
				return
			}
			if len(report.Findings) != 2 || report.Findings[0].Column != tc.column || report.Findings[0].Count != 1 || fault.Of(report.Err()) != fault.Key {
				t.Errorf("%+v", report.Findings)
			}
		})
	}
}
