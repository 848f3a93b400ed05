package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/schemas"
)

// PrivacySchema names the layout of privacy.json; a change that is more than an addition gets another name.
const PrivacySchema = "tailgate.privacy/1"

// PrivacyReport is privacy.json of a day: what is kept of a request, what was suppressed, how old the keys are, and
// whether this binary let a planted text through.
type PrivacyReport struct {
	Schema string `json:"schema"`
	Tool   string `json:"tool_version"`
	Day    string `json:"day"`
	Epoch  string `json:"epoch"` // of the day's block ids
	Rows   int64  `json:"rows"`  // of the day

	Tables     []KeptTable         `json:"tables"` // that the job writes
	Suppressed []ingest.Suppressed `json:"suppressed"`
	Rekeyed    Rekeyed             `json:"rekeyed"`
	Blocks     BlockShares         `json:"blocks"`
	Forgotten  ForgottenCount      `json:"forgotten"`
	Keys       []KeyStatus         `json:"keys"` // that live
	Canary     CanaryResult        `json:"canary"`
}

// KeptTable lists the columns of one table.
type KeptTable struct {
	Table   string       `json:"table"`
	Columns []KeptColumn `json:"columns"`
}

// KeptColumn is what one column may hold.
type KeptColumn struct {
	Name string `json:"name"`
	// Holds: number, time, flag, block_ids, enum (a closed list), token (keyed), label (operator-listed), id (made by
	// tailgate: digests, versions), operator (the operator's own text). A string column may hold several, joined by "|".
	Holds string `json:"holds"`
}

// Rekeyed counts rows whose block ids were keyed again, or cut, since too few tenants hold a block.
type Rekeyed struct {
	Rows  int64 `json:"rows"`
	Keyed bool  `json:"keyed"` // false: their ids end before that block
}

// BlockShares are shares of the day's full blocks.
type BlockShares struct {
	Shared     int64   `json:"shared"`  // ids that are kept: another request has them too
	Private    int64   `json:"private"` // blocks that became a run length
	SharedOf   float64 `json:"shared_share"`
	PrivateOf  float64 `json:"private_share"`
	Suppressed float64 `json:"suppressed_hit_ratio"` // sharing that the cross-tenant rule took away, of all blocks
}

// ForgottenCount is what tombstones do.
type ForgottenCount struct {
	Tombstones int   `json:"tombstones"`
	Open       int   `json:"open"` // of these, with work that a killed run left
	Rows       int64 `json:"rows"` // left out of the day's build
}

// WritePrivacy writes reports/day=D/privacy.json of n.Day and sums it up in n.Status. A canary that got through is a key
// fault, after the report was written.
func WritePrivacy(ctx context.Context, n *Night) error {
	return writePrivacy(ctx, n, n.Day, nil)
}

// writePrivacy lets a test put a leak into the anonymizer.
func writePrivacy(ctx context.Context, n *Night, day string, wrap func(ingest.Anonymizer) ingest.Anonymizer) error {
	r := &PrivacyReport{Schema: PrivacySchema, Tool: n.Tool, Day: day, Tables: keptTables(), Suppressed: []ingest.Suppressed{}}
	if err := r.day(ctx, n); err != nil {
		return err
	}
	keys, err := newRetainer(n, true).keyStates(ctx)
	if err != nil {
		return err
	}
	r.Keys = keys
	if r.Canary, err = checkCanaries(ctx, canaryOptions{hash: n.hashOptions(), tool: n.Tool, wrap: wrap}); err != nil {
		return fmt.Errorf("checking this binary with canaries: %w", err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the privacy report: %w", err)
	}
	if err := n.Replace(ctx, path.Join(ReportFolder(day), PrivacyName), append(data, '\n')); err != nil {
		return err
	}
	n.Status.Privacy = r.sum()
	if r.Canary.Result != CanaryClean {
		return fault.Mark(fmt.Errorf("checking this binary with canaries: %d planted texts or strings outside of the allow-list came through", r.Canary.Found), fault.Key,
			"do not use this binary: keep what it wrote from everybody, and `tailgate audit` the lake with an earlier one")
	}
	return nil
}

// day fills in what the day's build tells.
func (r *PrivacyReport) day(ctx context.Context, n *Night) error {
	m, err := n.Root.manifest(ctx, path.Join(LakeFolder, "day="+r.Day))
	if err != nil {
		return err
	}
	if m != nil {
		r.Epoch = m.Epoch
	}
	stones, err := ingest.Tombstones(ctx, n.Root.Path(LakeFolder), n.bucketOfLake())
	if err != nil {
		return err
	}
	r.Forgotten.Tombstones = len(stones)
	for _, t := range stones {
		if t.Open != nil {
			r.Forgotten.Open++
		}
	}
	p, err := n.PublishReport(ctx, r.Day)
	if err != nil || p == nil {
		return err
	}
	r.Rows, r.Forgotten.Rows = p.Rows, p.Forgotten
	r.Suppressed = append(r.Suppressed, p.Suppressed...)
	r.Rekeyed = Rekeyed{Rows: p.Shared.Rows, Keyed: p.Shared.Keyed}
	r.Blocks = BlockShares{Shared: p.SharedBlocks, Private: p.PrivateBlocks, Suppressed: p.Shared.LostHits}
	if all := float64(p.SharedBlocks + p.PrivateBlocks); all > 0 {
		r.Blocks.SharedOf, r.Blocks.PrivateOf = float64(p.SharedBlocks)/all, float64(p.PrivateBlocks)/all
	}
	return nil
}

func (r *PrivacyReport) sum() *PrivacyStatus {
	s := &PrivacyStatus{Canary: r.Canary.Result, RekeyedRows: r.Rekeyed.Rows, SharedBlocks: r.Blocks.SharedOf}
	for _, c := range r.Suppressed {
		s.SuppressedLabels += int64(c.Labels)
	}
	return s
}

// hashOptions say how the run makes block ids.
func (n *Night) hashOptions() anonymize.Options {
	if n.o == nil {
		return anonymize.Options{}
	}
	return n.o.Hash
}

// keptTables lists the columns of the tables that the job writes: lake, traces and profiles.
func keptTables() []KeptTable {
	var out []KeptTable
	for _, t := range schemas.Tables() {
		switch t.Name {
		case schemas.TableRequests, schemas.TableSegment, schemas.TableDeadLetters, schemas.TableTrace:
		default:
			if !strings.HasPrefix(t.Name, "profile_") {
				continue
			}
		}
		rules := schemas.StringColumns(t.Name)
		kept := KeptTable{Table: t.Name}
		for _, f := range parquet.SchemaOf(t.Row).Fields() {
			kept.Columns = append(kept.Columns, KeptColumn{Name: f.Name(), Holds: holds(f, rules)})
		}
		out = append(out, kept)
	}
	return out
}

// holds tells what a column holds.
func holds(f parquet.Field, rules map[string]schemas.StringRule) string {
	if rule, ok := rules[f.Name()]; ok {
		return strings.Join(ruleWords(rule), "|")
	}
	switch {
	case f.Name() == "hash_ids":
		return "block_ids"
	case !f.Leaf():
		return "number"
	case strings.HasPrefix(f.Type().String(), "TIMESTAMP"):
		return "time"
	case f.Type().Kind() == parquet.Boolean:
		return "flag"
	case f.Type().Kind() == parquet.ByteArray:
		return "id"
	}
	return "number"
}

func ruleWords(r schemas.StringRule) []string {
	var words []string
	for _, w := range []struct {
		word string
		is   bool
	}{{"enum", len(r.Enum) > 0}, {"token", r.Tokens != ""}, {"label", r.Label}, {"id", r.Pattern != ""}, {"operator", r.Operator}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	slices.Sort(words)
	return words
}
