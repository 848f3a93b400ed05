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
	for _, out := range []struct{ flag, value string }{{"gate", f.gate}, {"html", f.html}, {"junit", f.junit}, {"parquet", f.tables}, {"truth", f.truth}} {
		if out.value != "" {
			errs = append(errs, fmt.Errorf("--trend does not go with --%s", out.flag))
		}
	}
	if err := allFaults(append(errs, byErr, checkK(f.k), oneStdout(f))...); err != nil {
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
	render := t.WriteText
	if f.asJSON {
		render = t.WriteJSON
	}
	if f.markdown == "-" {
		render = t.WriteMarkdown
	} else if err := writeRendered(f.markdown, t.WriteMarkdown); err != nil {
		return err
	}
	return render(a.stdout)
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
