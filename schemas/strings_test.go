package schemas_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"tailgate/schemas"
)

// Every column that can hold text has a rule, and no rule is for a column that is not there: a new string column
// does not pass without somebody saying what may stand in it.
func TestEveryStringColumnHasARule(t *testing.T) {
	for _, table := range schemas.Tables() {
		var got []string
		for _, path := range parquet.SchemaOf(table.Row).Columns() {
			leaf, _ := parquet.SchemaOf(table.Row).Lookup(path...)
			if k := leaf.Node.Type().Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
				names := slices.DeleteFunc(slices.Clone(path), func(s string) bool { return s == "key_value" || s == "list" || s == "element" })
				got = append(got, strings.Join(names, "."))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(schemas.StringColumns(table.Name))), got); diff != "" {
			t.Errorf("%s (-rules +columns):\n%s", table.Name, diff)
		}
	}
	if schemas.StringColumns("nosuch") != nil {
		t.Error("an unknown table has rules")
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(schemas.Footer{}.Map())), slices.DeleteFunc(slices.Sorted(maps.Keys(schemas.FooterStrings())),
		func(k string) bool { return k == schemas.KeySegment || k == schemas.KeyTrace })); diff != "" {
		t.Errorf("footer keys (-written +rules):\n%s", diff)
	}
}

// What segments and profiles say of themselves fits the rules: a mapping of one's own, epochs by day, what merging leaves.
func TestRulesTakeWhatIsWritten(t *testing.T) {
	segment := schemas.FooterStrings()[schemas.KeySegment].Matcher(nil)
	for _, v := range []string{"litellm-spend", "mapped:my-kong_2.1", "b-20261118T093000.123456Z", "2026-11-18", "skipped_messages", "k_ajwkcaglbi52k"} {
		if !segment(v) {
			t.Errorf("a segment may not say %q", v)
		}
	}
	source := schemas.StringColumns(schemas.TableProfileMeta)["source"].Matcher(nil)
	for _, v := range []string{"lake", "trace", "servegen", "*"} {
		if !source(v) {
			t.Errorf("a profile may not be of %q", v)
		}
	}
}

// Only what the operator wrote is free, and only in tables that no prompt comes near.
func TestTheLakeHasNoFreeText(t *testing.T) {
	for _, table := range []string{schemas.TableRequests, schemas.TableSegment, schemas.TableDeadLetters} {
		for name, rule := range schemas.StringColumns(table) {
			if rule.Operator {
				t.Errorf("%s.%s is free text", table, name)
			}
			for _, text := range []string{"Was the lamp lit at nine?", "lamp", "s_lamp", "t_ABCDEFGHIJKLM", "mapped:was it lit", "\x00"} {
				if rule.Matcher(nil)(text) {
					t.Errorf("%s.%s takes %q", table, name, text)
				}
			}
		}
	}
}

func TestStringRules(t *testing.T) {
	listed := func(s string) bool { return s == "pelican-8b" }
	for _, tc := range []struct {
		table, column, value string
		want                 bool
	}{
		{schemas.TableRequests, "tenant", "t_abcdefghijk27", true},
		{schemas.TableRequests, "tenant", "other", true},
		{schemas.TableRequests, "tenant", "s_abcdefghijk27", false},
		{schemas.TableRequests, "tenant", "t_abcdefghijk27x", false},
		{schemas.TableRequests, "tenant", "t_abcdefghijk08", false},
		{schemas.TableRequests, "tenant", "pelican-8b", false},
		{schemas.TableRequests, "model", "pelican-8b", true},
		{schemas.TableRequests, "model", "pelican-9b", false},
		{schemas.TableRequests, "model", "", true},
		{schemas.TableRequests, "class", "", false},
		{schemas.TableRequests, "gateway", "mapped:own", true},
		{schemas.TableTrace, "session", "s_abcdefghijk27#3", true},
		{schemas.TableTrace, "session", "s_abcdefghijk27#3 and more", false},
		{schemas.TableProfileRate, "tenant", "*", true},
		{schemas.TableRuns, "settings", "anything", true},
		{schemas.TableResults, "run_id", "sim-0123456789ab", true},
		{schemas.TableResults, "run_id", "x\nsim-0123456789ab", false},
	} {
		if got := schemas.StringColumns(tc.table)[tc.column].Matcher(listed)(tc.value); got != tc.want {
			t.Errorf("%s.%s %q: %v", tc.table, tc.column, tc.value, got)
		}
	}
}
