package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/wildcard"
	"tailgate/schemas"
)

// Observation is what one request of a run tells about the engine that served it. Times are µs.
type Observation struct {
	Target string // replica; the times of one target have one zero
	OK     bool   // served whole, streamed, with its tokens known; others only count
	// Sent is when it was sent, First and Last are its first and last token.
	Sent, First, Last int64
	Queue             int64 // from sent to the first scheduling, as the server tells it; -1 = not told
	Input, Cached     int32 // prompt tokens, and those of them that the cache had; Cached -1 = not told
	Output            int32
	FirstTokens       int32 // output tokens of the first event, at least 1
}

// ReadObservations reads results: run folders, results files in Parquet, or JSONL with the columns of the results
// table. Broken content is a fault of kind Data.
func ReadObservations(ctx context.Context, paths []string) ([]Observation, error) {
	var all []Observation
	for i, path := range paths {
		files, err := resultFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			// Two inputs have two zeros.
			obs, err := readResults(ctx, file)
			if err != nil {
				return nil, err
			}
			for _, o := range obs {
				if len(paths) > 1 {
					o.Target = fmt.Sprintf("%d %s", i, o.Target)
				}
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// resultFiles lists the files of a run folder, or the path itself.
func resultFiles(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	if !st.IsDir() {
		return []string{path}, nil
	}
	for _, pattern := range []string{"results.parquet", "results-*.parquet"} {
		if files, err := wildcard.Paths(path, pattern); err == nil && len(files) > 0 {
			return files, nil
		}
	}
	return nil, fault.Mark(fmt.Errorf("reading results: %s holds none", path), fault.Data, "give the folder of a run, or a results file")
}

func readResults(ctx context.Context, path string) ([]Observation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	defer f.Close()
	var magic [4]byte
	if n, _ := f.ReadAt(magic[:], 0); n == 4 && string(magic[:]) == "PAR1" {
		return readParquetResults(ctx, path)
	}
	return readJSONLResults(f, path)
}

func readParquetResults(ctx context.Context, path string) (_ []Observation, err error) {
	r, err := parquetio.Open[schemas.Result](path)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	all := make([]Observation, 0, r.NumRows())
	batch := make([]schemas.Result, 512)
	for {
		n, err := r.Read(batch)
		for i := range batch[:n] {
			all = append(all, observe(&batch[i]))
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("reading results: %w", err)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// observe takes what the fit needs of a result.
func observe(r *schemas.Result) Observation {
	o := Observation{Target: r.Target, Queue: -1, Cached: -1, FirstTokens: 1, Input: r.InputLength}
	set := func(to *int32, from *int32) {
		if from != nil {
			*to = *from
		}
	}
	set(&o.Input, r.InputTokens)
	set(&o.Cached, r.CachedTokens)
	set(&o.Output, r.OutputTokens)
	set(&o.FirstTokens, r.FirstEventTokens)
	if r.ServerQueueUs != nil {
		o.Queue = *r.ServerQueueUs
	}
	if r.Status != schemas.ResultOK || r.SentUs == nil || r.FirstTokenUs == nil || r.LastTokenUs == nil || r.OutputTokens == nil {
		return o
	}
	o.Sent, o.First, o.Last = *r.SentUs, *r.FirstTokenUs, *r.LastTokenUs
	o.OK = o.Output >= 1 && o.Output <= maxTokens && o.Input >= 1 && o.Input <= maxTokens && o.Cached <= o.Input &&
		o.FirstTokens >= 1 && o.FirstTokens <= o.Output && o.Queue < maxStamp &&
		o.Sent > -maxStamp && o.First >= o.Sent && o.Last >= o.First && o.Last < maxStamp
	return o
}

// maxStamp bounds a time in µs, so that sums of two in ns stay in an int64: more than a year.
const maxStamp = 1 << 45

// resultLine is a line of results in JSON.
type resultLine struct {
	Target           string `json:"target"`
	Status           string `json:"status"`
	SentUs           *int64 `json:"sent_us"`
	FirstTokenUs     *int64 `json:"first_token_us"`
	LastTokenUs      *int64 `json:"last_token_us"`
	ServerQueueUs    *int64 `json:"server_queue_us"`
	InputLength      int32  `json:"input_length"`
	InputTokens      *int32 `json:"input_tokens"`
	CachedTokens     *int32 `json:"cached_tokens"`
	OutputTokens     *int32 `json:"output_tokens"`
	FirstEventTokens *int32 `json:"first_event_tokens"`
}

// maxResultLine bounds a line of results in bytes.
const maxResultLine = 16 << 20

func readJSONLResults(r io.Reader, path string) ([]Observation, error) {
	var all []Observation
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxResultLine)
	n := 0
	for lines.Scan() {
		if n++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l resultLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fault.Mark(fmt.Errorf("reading results: %s:%d: %w", path, n, err), fault.Data, "")
		}
		all = append(all, observe(&schemas.Result{Target: l.Target, Status: l.Status, SentUs: l.SentUs, FirstTokenUs: l.FirstTokenUs,
			LastTokenUs: l.LastTokenUs, ServerQueueUs: l.ServerQueueUs, InputLength: l.InputLength, InputTokens: l.InputTokens,
			CachedTokens: l.CachedTokens, OutputTokens: l.OutputTokens, FirstEventTokens: l.FirstEventTokens}))
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fault.Mark(fmt.Errorf("reading results: %s:%d: the line is longer than %d bytes", path, n+1, maxResultLine), fault.Data, "")
	} else if err != nil {
		return nil, fmt.Errorf("reading results: %s: %w", path, err)
	}
	return all, nil
}
