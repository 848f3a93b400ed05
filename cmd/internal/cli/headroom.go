package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tailgate/capacity"
	"tailgate/internal/fault"
	"tailgate/internal/wildcard"
	"tailgate/profile"
	"tailgate/schemas"
)

type headroomFlags struct {
	peak            time.Duration
	replicas        int
	csv, prom, page string
	strict, asJSON  bool
}

func (a *app) envelopeHeadroomCommand() *cobra.Command {
	var f headroomFlags
	cmd := &cobra.Command{
		Use:   "headroom ENVELOPE PROFILE…",
		Short: "Hold the traffic of the last days against a Capacity Envelope",
		Long: `Compares the highest 10 s and 60 s rates of the last day, per class and of all, with Safe QPS and with the rate that was tested with
one replica less; tells when the peaks outgrow Safe QPS if they go on as in the last eight weeks, how many replicas each hour
needs, and whether the traffic left what was tested. It needs no GPU and runs nothing.

ENVELOPE is an envelope file or the folder of a capacity test. PROFILE is the folder of a profile, or one with profiles in
day=* folders, of which the last eight weeks are read.

Exit codes: 0 done; 1 unreadable or unfinished; 2 wrong usage, days given twice; 3 a peak is above Safe QPS (with --strict also: above
the rate with one replica less, or the envelope is stale); 6 a broken file.`,
		Example: `  tailgate envelope headroom capacity-eu profiles
  tailgate envelope headroom envelope.yaml profiles/day=2026-09-0* --csv replicas.csv --prometheus headroom.prom`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.headroom(args[0], args[1:], &f) },
	}
	fl := cmd.Flags()
	fl.DurationVar(&f.peak, "peak", time.Minute, "bins whose highest rate decides: 60s or 10s")
	fl.IntVar(&f.replicas, "replicas", 0, "replicas of the tested cluster (default: as the envelope says)")
	fl.StringVar(&f.csv, "csv", "", "also write the replicas that each hour needs to this file, - for stdout")
	fl.StringVar(&f.prom, "prometheus", "", "also write the figures to this file, as Prometheus text, - for stdout")
	fl.StringVar(&f.page, "html", "", "also write them as one HTML page, - for stdout")
	fl.BoolVar(&f.strict, "strict", false, "end with 3 also above the rate with one replica less, and when the envelope is stale")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

// renderings are the forms of a headroom that the flags ask for.
func (f *headroomFlags) renderings(h *capacity.Headroom) []rendering {
	return []rendering{{"--csv", f.csv, h.WriteCSV}, {"--prometheus", f.prom, h.WritePrometheus}, {"--html", f.page, h.WriteHTML}}
}

func (a *app) headroom(envelope string, profiles []string, f *headroomFlags) error {
	if err := allFaults(oneStdout(f.asJSON, f.renderings(nil)...)); err != nil {
		return err
	}
	e, err := capacity.ReadEnvelope(envelope)
	if err != nil {
		return err
	}
	dirs, err := a.profileDirs(profiles)
	if err != nil {
		return err
	}
	days, err := headroomDays(dirs)
	if err != nil {
		return err
	}
	h, err := capacity.NewHeadroom(capacity.HeadroomOptions{Envelope: e, Days: days, Decides: f.peak, Replicas: f.replicas})
	if err != nil {
		return err
	}
	if h.OverSafe || f.strict && (h.OverNMinus1 || h.Stale != nil && *h.Stale) {
		a.code = exitGateFailed
	}
	asJSON := func(w io.Writer) error { return json.NewEncoder(w).Encode(h) }
	return a.render(f.asJSON, h.WriteText, asJSON, f.renderings(h)...)
}

// headroomDays reads profiles one by one, so that memory is that of one.
func headroomDays(dirs []string) ([]*capacity.Day, error) {
	var lists [][]*capacity.Day
	for _, dir := range dirs {
		p, err := profile.ReadTables(dir, schemas.TableProfileRate, schemas.TableProfileLength, schemas.TableProfileHitCurve)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fault.Mark(err, fault.Data, "make that day's profile again")
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", dir, err)
		}
		days, err := capacity.NewDays(capacity.ProfileTables{Name: dir, Meta: p.Meta[0], Rate: p.Rate, Lengths: p.Lengths, Hits: p.HitCurve})
		if err != nil {
			return nil, err
		}
		lists = append(lists, days)
	}
	return capacity.MergeDays(lists...)
}

// mostHeadroomDays are those of a trend.
const mostHeadroomDays = 56

// profileDirs are the folders of the profiles that the arguments name, and of those in their day=* folders; of these
// unfinished ones are left out, and so are the oldest.
func (a *app) profileDirs(args []string) ([]string, error) {
	var out []string
	for _, dir := range args {
		meta := schemas.TableProfileMeta + ".parquet"
		if _, err := os.Stat(filepath.Join(dir, meta)); err == nil {
			if _, err := schemas.ReadManifest(dir); err != nil {
				return nil, fmt.Errorf("reading %s: no finished profile: %w", dir, err)
			}
			out = append(out, dir)
			continue
		}
		var days []string
		for _, pattern := range []string{meta, filepath.Join("profile", meta)} {
			found, err := wildcard.Paths(dir, filepath.Join("day=*", pattern))
			if err != nil {
				return nil, usage(fmt.Errorf("reading %s: %w", dir, err), "")
			}
			days = append(days, found...)
		}
		slices.Sort(days)
		for _, file := range days[max(0, len(days)-mostHeadroomDays):] {
			day := filepath.Dir(file)
			if _, err := schemas.ReadManifest(day); err != nil {
				a.note("%s is left out: no finished profile: %v", day, err)
				continue
			}
			out = append(out, day)
		}
		if len(days) == 0 {
			return nil, usage(fmt.Errorf("%s holds no profile and no day=* folder with one", dir), "tailgate profile writes one")
		}
	}
	return out, nil
}
