// Command rowcount counts the rows of the published days of a lake, again and again until its standard input ends:
// the Go reader among those that tools/checks/rebuild.py holds against a day that is being rebuilt. LAKE is a folder
// or s3://bucket/prefix. Each line on stdout is one read: {"rows": n, "tokens": sum of input_tokens} or {"error": …}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
)

type answer struct {
	Rows   int64  `json:"rows"`
	Tokens int64  `json:"tokens"`
	Error  string `json:"error,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rowcount LAKE")
		os.Exit(2)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	out := json.NewEncoder(os.Stdout)
	for {
		a, err := count(context.Background(), os.Args[1])
		if err != nil {
			a = answer{Error: strings.ReplaceAll(err.Error(), "\n", " ")}
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, "rowcount:", err)
			os.Exit(1)
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

// count reads every file that the glob day=*/*.parquet finds.
func count(ctx context.Context, lake string) (a answer, err error) {
	if !objstore.IsS3(lake) {
		paths, err := filepath.Glob(filepath.Join(lake, "day=*", "*.parquet"))
		if err != nil || len(paths) == 0 {
			return a, errors.Join(err, errors.New("no file"))
		}
		for _, p := range paths {
			f, err := os.Open(p)
			if err != nil {
				return a, err
			}
			st, err := f.Stat()
			if err == nil {
				err = a.add(f, st.Size(), p)
			}
			if err = errors.Join(err, f.Close()); err != nil {
				return a, err
			}
		}
		return a, nil
	}
	s, err := objstore.OpenS3(ctx, lake, objstore.S3Options{Endpoint: os.Getenv("TAILGATE_S3_ENDPOINT")})
	if err != nil {
		return a, err
	}
	days, err := s.Folders(ctx, "day=")
	if err != nil || len(days) == 0 {
		return a, errors.Join(err, errors.New("no day"))
	}
	for _, day := range days {
		list, err := s.List(ctx, day)
		if err != nil {
			return a, err
		}
		for _, o := range list {
			if !strings.HasSuffix(o.Key, ".parquet") {
				continue
			}
			r, err := s.Open(ctx, o.Key)
			if err != nil {
				return a, err
			}
			if err := errors.Join(a.add(r, r.Size(), o.Key), r.Close()); err != nil {
				return a, err
			}
		}
	}
	return a, nil
}

// add counts one file.
func (a *answer) add(r io.ReaderAt, size int64, name string) error {
	type row struct {
		InputTokens *int32 `parquet:"input_tokens,optional"`
	}
	rd, err := parquetio.OpenAt[row](r, size, name)
	if err != nil {
		return err
	}
	batch := make([]row, 1024)
	for {
		n, err := rd.Read(batch)
		if errors.Is(err, io.EOF) {
			return rd.Close()
		}
		if err != nil {
			return errors.Join(err, rd.Close())
		}
		for _, b := range batch[:n] {
			a.Rows++
			if b.InputTokens != nil {
				a.Tokens += int64(*b.InputTokens)
			}
		}
	}
}
