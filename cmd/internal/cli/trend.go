package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// trend is `tailgate analyze --trend`.
func (a *app) trend(ctx context.Context, inputs []string, f *analyzeFlags, warmup *time.Duration) error {
	by, byErr := parseBys(f.by)
	var errs []error
	for _, other := range []struct {
		flag  string
		given bool
	}{{"gate", f.gate != ""}, {"html", f.html != ""}, {"junit", f.junit != ""}, {"parquet", f.tables != ""}, {"truth", f.truth != ""},
		{"explain", f.explain.on}, {"trace", f.explain.trace != ""}, {"slo", len(f.explain.slo) > 0}} {
		if other.given {
			errs = append(errs, fmt.Errorf("--trend does not go with --%s", other.flag))
		}
	}
	if err := allFaults(append(errs, byErr, checkK(f.k), oneStdout(f.asJSON, rendering{flag: "--markdown", path: f.markdown}))...); err != nil {
		return err
	}
	var stored []analyze.Stored
	for _, in := range inputs {
		s, err := readStored(in)
		if errors.Is(err, fs.ErrNotExist) {
			s, err = storedOf(ctx, in, f.k, analyze.Options{By: by, Warmup: warmup, Histograms: true})
		}
		if err != nil {
			return err
		}
		stored = append(stored, s)
	}
	t, err := analyze.MakeTrend(stored)
	if err != nil {
		return err
	}
	return a.render(f.asJSON, t.WriteText, t.WriteJSON, rendering{"--markdown", f.markdown, t.WriteMarkdown})
}

// readStored reads what --parquet wrote into a folder; fs.ErrNotExist when it is none.
func readStored(dir string) (analyze.Stored, error) {
	s := analyze.Stored{Name: dir}
	path := filepath.Join(dir, schemas.TableBuckets+".parquet")
	if _, err := os.Stat(path); err != nil {
		return s, fs.ErrNotExist
	}
	var err error
	if s.Buckets, _, err = parquetio.ReadFile[schemas.Bucket](path); err == nil {
		s.Runs, _, err = parquetio.ReadFile[schemas.Run](filepath.Join(dir, schemas.TableRuns+".parquet"))
	}
	if err != nil {
		return s, fault.Mark(fmt.Errorf("reading the tables of %s: %w", dir, err), fault.Data, "write them anew with --parquet")
	}
	return s, nil
}

// storedOf analyses results whose tables were not stored.
func storedOf(ctx context.Context, in string, k int, o analyze.Options) (analyze.Stored, error) {
	s := analyze.Stored{Name: in}
	data, err := loadResults(ctx, []string{in}, k)
	if err != nil {
		return s, err
	}
	report, err := analyze.Analyze(ctx, data, o)
	if err != nil {
		return s, err
	}
	s.Buckets, _ = report.Tables()
	s.Runs, err = report.RunRows()
	return s, err
}
