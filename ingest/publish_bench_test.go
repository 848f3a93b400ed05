package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

const benchRows = 100_000

// BenchmarkPublish publishes a day of 100,000 rows with 8 ids in the mean.
func BenchmarkPublish(b *testing.B) {
	lake := b.TempDir()
	proveLake(b, lake, benchRows)
	for b.Loop() {
		r, err := Publish(b.Context(), PublishOptions{Lake: lake, Day: proveDay, KeepBuilds: -1})
		if err != nil || r.Rows != benchRows {
			b.Fatalf("%+v, %v", r, err)
		}
	}
}

// BenchmarkSortStructs is the baseline: the same rows read into structs, sorted, and written to a file, without
// anything that publish finds out about them.
func BenchmarkSortStructs(b *testing.B) {
	lake := b.TempDir()
	proveLake(b, lake, benchRows)
	store := objstore.NewDir(lake)
	list, err := store.List(context.Background(), segmentsFolder)
	if err != nil {
		b.Fatal(err)
	}
	out := filepath.Join(lake, "sorted.parquet")
	for b.Loop() {
		var rows []schemas.Request
		for _, o := range list {
			data, err := os.ReadFile(filepath.Join(lake, filepath.FromSlash(o.Key)))
			if err != nil {
				b.Fatal(err)
			}
			more, err := parquetio.ReadAllAt[schemas.Request](bytes.NewReader(data), int64(len(data)), o.Key)
			if err != nil {
				b.Fatal(err)
			}
			rows = append(rows, more...)
		}
		slices.SortFunc(rows, func(x, y schemas.Request) int {
			return cmp.Or(x.ArrivedAt.Compare(y.ArrivedAt), cmp.Compare(x.RequestKey, y.RequestKey))
		})
		f, err := os.Create(out)
		if err != nil {
			b.Fatal(err)
		}
		w := parquetio.NewWriter[schemas.Request](f, nil, 0)
		if err := errors.Join(w.Write(rows), w.Close(), f.Sync(), f.Close()); err != nil || len(rows) != benchRows {
			b.Fatalf("%d rows, %v", len(rows), err)
		}
	}
}
