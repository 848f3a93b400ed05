package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tailgate/ingest"
	"tailgate/schemas"
)

// group is what one label of a published day holds.
type group struct {
	rows     int
	sessions map[string]bool
}

// labelGroups returns the groups of a column by label; "" = null.
func labelGroups(rows []schemas.Request, label func(*schemas.Request) string) map[string]*group {
	out := map[string]*group{}
	for i := range rows {
		l := label(&rows[i])
		if out[l] == nil {
			out[l] = &group{sessions: map[string]bool{}}
		}
		g := out[l]
		g.rows++
		session := fmt.Sprint("row ", i)
		if rows[i].Session != nil {
			session = *rows[i].Session
		}
		g.sessions[session] = true
	}
	return out
}

var labelOf = map[string]func(*schemas.Request) string{
	"tenant": func(r *schemas.Request) string { return value(r.Tenant) },
	"class":  func(r *schemas.Request) string { return value(r.Class) },
	"model":  func(r *schemas.Request) string { return r.Model },
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// TestNoPublishedLabelIsSmall: whatever the traffic, each label of a day, "other" included, stands for at least k
// sessions and enough requests, and no row is lost.
func TestNoPublishedLabelIsSmall(t *testing.T) {
	others, nulls := 0, 0
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		k, least := 1+r.IntN(6), 1+r.IntN(30)
		tenants, models := 1+r.IntN(8), 1+r.IntN(4)
		var values [][]byte
		for i := range 20 + r.IntN(200) {
			tenant := int(r.ExpFloat64() * float64(tenants) / 3) // a few large, many small
			change := fields{"metadata": fields{"user_api_key_team_id": fmt.Sprint("t", tenant)}, "session_id": fmt.Sprint(tenant, "-", r.IntN(12)),
				"model_group": fmt.Sprint("m", r.IntN(models)*r.IntN(2))}
			if r.IntN(6) == 0 {
				delete(change, "session_id")
				change["session_id"], change["trace_id"] = nil, nil
			}
			if r.IntN(9) == 0 {
				change["metadata"] = nil
			}
			values = append(values, litellm(i, change))
		}
		report, rows := publish(t, lakeOf(t, values), k, least)
		if int(report.Rows) != len(values) || len(rows) != len(values) {
			t.Fatalf("seed %d: %d rows of %d", seed, len(rows), len(values))
		}
		for column, label := range labelOf {
			for l, g := range labelGroups(rows, label) {
				switch {
				case l == "":
					nulls++
				case len(g.sessions) < k || g.rows < least:
					t.Errorf("seed %d: %s %q has %d sessions and %d rows, want %d and %d", seed, column, l, len(g.sessions), g.rows, k, least)
				case l == schemas.LabelOther:
					others++
				}
			}
		}
	}
	if others == 0 || nulls == 0 {
		t.Errorf("the traffic is too tame: %d others, %d nulls", others, nulls)
	}
}

// TestTwoDaysDoNotTellATenantByTheirDifference: a tenant is large on one day and small on the next. On the second
// day it has no label, also not as the only one behind "other", and neither day tells a label of fewer than k
// sessions, so that no difference of two labels' figures is about fewer.
func TestTwoDaysDoNotTellATenantByTheirDifference(t *testing.T) {
	const k, least = 5, 10
	day := func(sessions map[string]int) []schemas.Request {
		var values [][]byte
		for _, tenant := range []string{"large", "steady", "shrinking"} {
			for s := range sessions[tenant] {
				for range 4 {
					values = append(values, litellm(len(values), fields{"metadata": fields{"user_api_key_team_id": tenant}, "session_id": fmt.Sprint(tenant, s)}))
				}
			}
		}
		_, rows := publish(t, lakeOf(t, values), k, least)
		return rows
	}
	first := labelGroups(day(map[string]int{"large": 30, "steady": 8, "shrinking": 6}), labelOf["tenant"])
	second := labelGroups(day(map[string]int{"large": 30, "steady": 8, "shrinking": 1}), labelOf["tenant"])
	token := func(name string) string { return fakeAnon{key: "k1"}.Token("tenant", []byte(name)) }
	if len(first) != 3 || first[token("shrinking")] == nil {
		t.Fatalf("first day: %d labels", len(first))
	}
	// "other" would be this tenant alone: it is null, and so is the label of its rows.
	if second[schemas.LabelOther] != nil || second[token("shrinking")] != nil || second[""] == nil || second[""].rows != 4 {
		t.Errorf("second day: %v", second)
	}
	for _, groups := range []map[string]*group{first, second} {
		for l, g := range groups {
			if l != "" && (len(g.sessions) < k || g.rows < least) {
				t.Errorf("label %q has %d sessions and %d rows", l, len(g.sessions), g.rows)
			}
		}
	}
}

// TestDamagedPromptsDoNotShareMore: when part of a log's prompts is cut, redacted or replaced by the gateway, the
// sharing that is measured does not rise, and a log of nothing else shares nothing.
func TestDamagedPromptsDoNotShareMore(t *testing.T) {
	const requests = 120
	corpus := func(damage func(i int, text string) string) *ingest.PublishReport {
		r := rand.New(rand.NewPCG(2, 2)) // the same texts each time
		var values [][]byte
		for i := range requests {
			text := strings.Repeat("You keep the fictional lighthouse log. ", r.IntN(20)) + fmt.Sprintf("question %d ", i) + strings.Repeat("own words ", r.IntN(60))
			values = append(values, litellm(i, fields{"messages": damage(i, text), "prompt_tokens": len(text)/4 + 1}))
		}
		report, _ := publish(t, lakeOf(t, values), 1, 1)
		return report
	}
	whole := corpus(func(_ int, text string) string { return text })
	if whole.Shared.HitRatio < .05 {
		t.Fatalf("the texts share %v of their blocks: the case is too tame", whole.Shared.HitRatio)
	}
	for name, damage := range map[string]func(text string) string{
		"redacted":    func(string) string { return "redacted-by-litellm" },
		"hidden":      func(string) string { return "__REDACTED__" },
		"placeholder": func(text string) string { return fmt.Sprintf("<%d tokens>", len(text)/4) },
		"cut in the middle": func(text string) string {
			return text[:len(text)/3] + "... (litellm_truncated 99 chars) ..." + text[len(text)-9:]
		},
		"cut, half and half":  func(text string) string { return text[:len(text)/2] + " [truncated] " + text[len(text)/2+1:] },
		"cut, start is alike": func(text string) string { return text[:min(40, len(text))] + "[TRUNCATED]" },
	} {
		t.Run(name, func(t *testing.T) {
			for _, share := range []int{1, 3} {
				got := corpus(func(i int, text string) string {
					if i%share == 0 {
						return damage(text)
					}
					return text
				})
				if got.Shared.HitRatio > whole.Shared.HitRatio {
					t.Errorf("1 of %d damaged: %.4f of the blocks are shared, %.4f without damage", share, got.Shared.HitRatio, whole.Shared.HitRatio)
				}
				if share == 1 && got.SharedBlocks > 0 {
					t.Errorf("all damaged: %d shared blocks", got.SharedBlocks)
				}
			}
		})
	}
}
