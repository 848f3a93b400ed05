package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tailgate/internal/fault"
)

// agreement is the share of sampled records that must be of one format before it is taken for theirs.
const agreement = 0.95

// DefaultSample is how many messages [DetectFormat] and [Inspect] look at unless told otherwise.
const DefaultSample = 200

// sampleBytes bounds the messages of a sample together: large ones are fewer.
const sampleBytes = 64 << 20

// FormatShare is what one decoder made of a sample.
type FormatShare struct {
	Format string  `json:"format"`
	Share  float64 `json:"share"` // of the messages that hold anything
	Rows   int64   `json:"rows"`  // records that would become rows
}

// Detection is what looking at a source told.
type Detection struct {
	Format   string        `json:"format"` // "" = none, or more than one
	Messages int           `json:"messages"`
	Shares   []FormatShare `json:"shares"` // those above 0, the largest first
}

// DetectFormat looks at the first messages of every partition, sample in all (0 = 200) or 64 MiB, and tries every format
// of [Formats] but those that only read a part of another one's records. The format is the one of at least 95 %
// of the messages; when there is none, or more than one, the error is fault.Usage and lists the shares.
// Standard input cannot be looked at, since it cannot be read again.
func DetectFormat(ctx context.Context, src Source, sample int) (Detection, error) {
	values, err := sampleValues(ctx, src, or(sample, DefaultSample), false)
	if err != nil {
		return Detection{}, err
	}
	d := detect(values)
	for _, v := range values {
		clear(v)
	}
	return d, d.err()
}

// detect tries all formats on the values.
func detect(values [][]byte) Detection {
	d := Detection{Messages: len(values), Shares: []FormatShare{}}
	var fit []string
	wrapping := newUnwrapper(CodecAuto)
	defer wrapping.close()
	for _, format := range detectable() {
		o := Options{Format: format}
		s := FormatShare{Format: format}
		good := 0
		decode := wrapping.before(o.decoder())
		for _, v := range values {
			rows, ok := tryMessage(decode, v)
			s.Rows += rows
			if ok {
				good++
			}
		}
		if good == 0 {
			continue
		}
		s.Share = float64(good) / float64(len(values))
		d.Shares = append(d.Shares, s)
		if s.Share >= agreement {
			fit = append(fit, format)
		}
	}
	slices.SortFunc(d.Shares, func(a, b FormatShare) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Format, b.Format))
	})
	if len(fit) == 1 {
		d.Format = fit[0]
	}
	return d
}

// tryMessage decodes a message, counts its rows, and tells whether all of its records are of the format.
func tryMessage(decode decoder, value []byte) (rows int64, ok bool) {
	ok = true
	for _, it := range decode(value) {
		switch {
		case it.rec != nil:
			rows++
			it.rec.clear()
		case it.dead != "" || it.skip == SkipEmpty:
			ok = false
		}
	}
	return rows, ok
}

func (d *Detection) err() error {
	if d.Format != "" {
		return nil
	}
	if d.Messages == 0 {
		return fault.Mark(errors.New("looking for the format: there is no record to look at"), fault.Failure, "name it with --format")
	}
	return fault.Mark(fmt.Errorf("looking for the format: %s", d), fault.Usage,
		"name it with --format, or describe the layout with --format mapped:FILE; `tailgate inspect` shows the fields")
}

// String tells in one line what was found.
func (d *Detection) String() string {
	if d.Format != "" {
		return fmt.Sprintf("%s (%s of %d sampled messages)", d.Format, percent(d.Shares[0].Share), d.Messages)
	}
	if len(d.Shares) == 0 {
		return fmt.Sprintf("none of %d sampled messages is of a known format", d.Messages)
	}
	shares := make([]string, len(d.Shares))
	for i, s := range d.Shares {
		shares[i] = s.Format + " " + percent(s.Share)
	}
	return fmt.Sprintf("no format fits 95 %% of %d sampled messages alone: %s", d.Messages, strings.Join(shares, ", "))
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// sampleValues copies the first messages that hold anything, evenly from all partitions, up to sampleBytes: the last
// one may go beyond. once allows sources that cannot be read again.
func sampleValues(ctx context.Context, src Source, sample int, once bool) ([][]byte, error) {
	parts, err := src.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	var values [][]byte
	room := sampleBytes
	for i, p := range parts {
		if p.Transient && !once {
			return nil, fault.Mark(errors.New("looking for the format: standard input cannot be read twice"), fault.Usage, "name it with --format")
		}
		left := (sample - len(values)) / (len(parts) - i)
		share := room / (len(parts) - i)
		room -= share
		for at := p.First; left > 0 && share > 0 && (p.End < 0 || at < p.End); {
			b, err := src.Fetch(ctx, p, at)
			if err != nil {
				return nil, err
			}
			done := b.Done || b.Next <= at
			for _, r := range b.Records {
				if r.Offset >= at && r.Mark == "" && len(bytes.TrimSpace(r.Value)) > 0 && left > 0 && share > 0 {
					values = append(values, bytes.Clone(r.Value))
					left--
					share -= len(r.Value)
				}
			}
			b.release()
			if done {
				break
			}
			at = b.Next
		}
		room += share
	}
	return values, ctx.Err()
}
