package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// groupBytes is the size of a row group in bytes of packed rows, which is close to what Parquet's encoding
// gives before compression.
const groupBytes = 96 << 20

// suppress decides what becomes of the labels.
func (b *build) suppress(ctx context.Context) (err error) {
	b.labels, b.report.Suppressed, err = b.found.suppress(ctx, b.words, b.o.K, b.o.MinRequests)
	return err
}

// write goes over the rows for the second time and writes them to d.
func (b *build) write(ctx context.Context, d *objstore.Draft, footer schemas.Footer) (schemas.FileDigest, error) {
	var none schemas.FileDigest
	h := sha256.New()
	w := parquetio.NewWriter[schemas.Request](io.MultiWriter(d, h), footer.Map(), math.MaxInt)
	ids := &tenantIDs{keyer: b.keyer}
	rows, size, at := make([]schemas.Request, batchRows), 0, 0
	odd := map[uint32]string{}
	var quality qualityCounter
	_, err := b.stream(ctx, func(batch []slot) error {
		for i := range batch {
			s := &batch[i]
			if _, ok := b.found.odd[uint32(at)]; ok {
				odd[uint32(at)] = string(s.texts[0])
			}
			whole := len(s.row.HashIDs)
			b.finish(s, uint32(at), ids)
			size += len(s.rec) - 8*(whole-len(s.row.HashIDs))
			quality.add(&s.row)
			rows[i] = s.row
			at++
		}
		if err := w.Write(rows[:len(batch)]); err != nil {
			return err
		}
		if size < groupBytes {
			return nil
		}
		size = 0
		return w.Flush()
	})
	if err != nil {
		return none, err
	}
	if err := errors.Join(w.Close(), d.Sync()); err != nil {
		return none, fmt.Errorf("writing the build: %w", err)
	}
	b.reportOdd(odd)
	b.report.Quality = quality.report()
	return schemas.FileDigest{Name: lakeFile, Bytes: d.Size(), SHA256: hex.EncodeToString(h.Sum(nil)), Rows: w.Rows()}, nil
}

// finish makes row number at what is published of it.
func (b *build) finish(s *slot, at uint32, ids *tenantIDs) {
	f, r := b.found, &s.row
	s.own()
	if r.Turn = nil; f.turns[at] >= 0 {
		s.turn = f.turns[at]
		r.Turn = &s.turn
	}
	b.cutIDs(s, at, ids)
	to := [3]**string{&r.Tenant, &r.Class, nil}
	for c := range labelColumns {
		label := b.labels.of(c, s.labels[c])
		if label == s.labels[c] {
			continue
		}
		s.label[c] = ""
		if label > 0 {
			s.label[c] = b.words.word(label - 1)
		}
		switch {
		case to[c] == nil:
			r.Model = s.label[c]
		case label == 0:
			*to[c] = nil
		default:
			*to[c] = &s.label[c]
		}
	}
}

// cutIDs keeps the leading ids that are shared, keys those of few tenants, and counts what is private.
func (b *build) cutIDs(s *slot, at uint32, ids *tenantIDs) {
	r := &s.row
	if r.HashIDs == nil {
		return
	}
	keep, full := b.found.keep[at], *r.InputTokens/blockSize
	r.HashIDs = r.HashIDs[:keep]
	r.PrivateBlocks = full - min(keep, full)
	b.report.SharedBlocks += int64(keep)
	b.report.PrivateBlocks += int64(r.PrivateBlocks)
	if b.keyer == nil {
		return
	}
	tenant := ""
	if r.Tenant != nil {
		tenant = *r.Tenant
	}
	for pos := b.found.foreign[at]; pos < keep; pos++ {
		r.HashIDs[pos] = ids.key(r.HashIDs[pos], tenant)
	}
}

// reportOdd names the worst of the suspicious request ids by their tokens.
func (b *build) reportOdd(tokens map[uint32]string) {
	out := &b.report.Suspicious
	for row, n := range b.found.odd {
		out.IDs++
		out.Rows += int64(n)
		out.Worst = append(out.Worst, OddID{RequestID: tokens[row], Rows: int64(n)})
	}
	slices.SortFunc(out.Worst, func(a, b OddID) int {
		if a.Rows != b.Rows {
			return int(b.Rows - a.Rows)
		}
		return bytes.Compare([]byte(a.RequestID), []byte(b.RequestID))
	})
	out.Worst = out.Worst[:min(len(out.Worst), 10)]
}
