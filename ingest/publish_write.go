package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// groupBytes is the size of a row group in bytes as sizeOf tells them, which is close to what Parquet's encoding
// gives before compression.
const groupBytes = 96 << 20

// fixedBytes is what the columns of fixed size take in a row, with those of dictionaries.
const fixedBytes = 84

// sizeOf is about what a row, as it is published, takes in the file before compression. It hangs on nothing but the
// row, since row groups must end at the same rows in every build.
func sizeOf(s *slot) int {
	size := fixedBytes + len(s.ids)
	for _, t := range s.texts {
		size += len(t)
	}
	return size
}

// suppress decides what becomes of the labels.
func (b *build) suppress(ctx context.Context) (err error) {
	b.labels, b.report.Suppressed, err = b.found.suppress(ctx, b.o.K, b.o.MinRequests)
	return err
}

// writing is the second pass over the rows.
type writing struct {
	b       *build
	w       *parquetio.GroupWriter[schemas.Request, slot]
	ids     tenantIDs
	quality qualityCounter
	groups  map[[2]uint32]*diffs // of quality, by model and class
	odd     map[uint32]string
	at      int // row number
	size    int // of the row group
}

// write goes over the rows for the second time and writes them to d.
func (b *build) write(ctx context.Context, d *objstore.Draft, footer schemas.Footer) (schemas.FileDigest, error) {
	var none schemas.FileDigest
	h := sha256.New()
	w, err := parquetio.NewGroupWriter[schemas.Request](io.MultiWriter(d, h), footer.Map(), requestFills(b.words))
	if err != nil {
		return none, err
	}
	defer w.Stop()
	p := &writing{b: b, w: w, ids: tenantIDs{keyer: b.keyer}, groups: map[[2]uint32]*diffs{}, odd: map[uint32]string{}}
	if _, err := b.stream(ctx, p.write); err != nil {
		return none, err
	}
	if err := errors.Join(w.Close(), d.Sync()); err != nil {
		return none, fmt.Errorf("writing the build: %w", err)
	}
	b.reportOdd(p.odd)
	b.report.Quality = p.quality.report()
	return schemas.FileDigest{Name: lakeFile, Bytes: d.Size(), SHA256: hex.EncodeToString(h.Sum(nil)), Rows: w.Rows()}, nil
}

// write makes the rows of a batch what is published of them and hands them to the writer.
func (p *writing) write(rows *batch) error {
	for i := range rows.rows {
		s := &rows.rows[i]
		if _, ok := p.b.found.odd[uint32(p.at)]; ok {
			p.odd[uint32(p.at)] = string(s.texts[textRequest])
		}
		p.b.finish(s, uint32(p.at), &p.ids)
		p.size += sizeOf(s)
		p.count(s)
		p.at++
	}
	if err := p.w.Write(rows.rows, rows.free); err != nil {
		return err
	}
	if p.at%batchRows != 0 || p.size < p.b.o.group {
		return nil
	}
	p.size = 0
	return p.w.Flush()
}

// count adds the row to the quality of its model and class.
func (p *writing) count(s *slot) {
	w := p.b.words
	reconciled := w.text(s.words[wordReconciled])
	if reconciled == schemas.ReconciledNone {
		return
	}
	at := [2]uint32{s.words[wordModel], s.words[wordClass]}
	d := p.groups[at]
	if d == nil {
		d = p.quality.group(groupName{model: w.text(at[0]), class: w.text(at[1])})
		p.groups[at] = d
	}
	d.add(reconciled)
	if s.hasInt(intCounted) && s.hasInt(intInput) {
		d.compare(int64(s.ints[intCounted]), int64(s.ints[intInput]))
	}
}

// finish makes row number at what is published of it.
func (b *build) finish(s *slot, at uint32, ids *tenantIDs) {
	f := b.found
	s.flags &^= hasInt << intTurn
	if turn := f.rows[at].turn; turn >= 0 {
		s.flags |= hasInt << intTurn
		s.ints[intTurn] = turn
	}
	b.cutIDs(s, at, ids)
	for c, label := range s.labelled() {
		to := b.labels.of(c, label)
		if to == 0 && c == 2 {
			to = wordEmpty
		}
		s.words[[...]int{wordTenant, wordClass, wordModel}[c]] = to
	}
}

// cutIDs keeps the leading ids that are shared, keys those of few tenants, and counts what is private.
func (b *build) cutIDs(s *slot, at uint32, ids *tenantIDs) {
	if !s.hasIDs() {
		return
	}
	keep, full := b.found.rows[at].keep, s.ints[intInput]/blockSize
	s.ids = s.ids[:8*keep]
	s.private = full - min(keep, full)
	b.report.SharedBlocks += int64(keep)
	b.report.PrivateBlocks += int64(s.private)
	if b.keyer == nil {
		return
	}
	tenant := b.words.text(s.words[wordTenant])
	for pos := b.found.rows[at].foreign; pos < keep; pos++ {
		s.setID(int(pos), ids.key(s.id(int(pos)), tenant))
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
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), strings.Compare(a.RequestID, b.RequestID))
	})
	out.Worst = out.Worst[:min(len(out.Worst), 10)]
}
