package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rawBatch is a batch of format 2 as a broker keeps it. A nil value is null; last is its last offset, which
// compaction may have taken the records from.
func rawBatch(base, last int64, attributes int16, codec compress.Compression, stamps [2]int64, values map[int64][]byte) []byte {
	var records []byte
	count := int32(0)
	for offset := base; offset <= last; offset++ {
		v, there := values[offset]
		if !there {
			continue
		}
		r := kmsg.Record{TimestampDelta64: offset - base, OffsetDelta: int32(offset - base), Key: []byte("k"), Value: v,
			Headers: []kmsg.Header{{Key: "h", Value: []byte("v")}}}
		body := r.AppendTo(nil)[1:] // without the length, which was 0
		records = append(binary.AppendVarint(records, int64(len(body))), body...)
		count++
	}
	if codec != compress.None {
		var packed bytes.Buffer
		w := codec.Codec().NewWriter(&packed)
		_, _ = w.Write(records)
		_ = w.Close()
		records = packed.Bytes()
	}
	b := kmsg.RecordBatch{FirstOffset: base, Length: int32(49 + len(records)), PartitionLeaderEpoch: -1, Magic: 2, Attributes: attributes | int16(codec),
		LastOffsetDelta: int32(last - base), FirstTimestamp: stamps[0], MaxTimestamp: stamps[1], ProducerID: 7, NumRecords: count, Records: records}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// TestRawBatches: whatever compaction, transactions and codecs leave in an answer, its records come out, and the
// position behind it is what its headers prove.
func TestRawBatches(t *testing.T) {
	x := func(offsets ...int64) map[int64][]byte {
		m := map[int64][]byte{}
		for _, o := range offsets {
			m[o] = []byte("x")
		}
		return m
	}
	stamps := [2]int64{1_795_000_000_000, 1_795_000_009_000}
	plain := func(base, last int64, values map[int64][]byte) []byte {
		return rawBatch(base, last, 0, 0, stamps, values)
	}
	huge := bytes.Repeat([]byte{0}, maxRecordBytes+1)
	for _, c := range []struct {
		name    string
		from    int64
		data    [][]byte
		aborted []fetch.ResponseTransaction
		want    []Record // times apart
		next    int64
	}{
		{name: "nothing", from: 7, next: 7},
		{name: "plain", from: 5, data: [][]byte{plain(5, 6, x(5, 6))}, want: []Record{{Offset: 5, Value: []byte("x"), Size: 1}, {Offset: 6, Value: []byte("x"), Size: 1}}, next: 7},
		{name: "from before", from: 6, data: [][]byte{plain(5, 6, x(5, 6))}, want: []Record{{Offset: 6, Value: []byte("x"), Size: 1}}, next: 7},
		{name: "compacted inside and at the end", from: 5, data: [][]byte{plain(5, 30, x(9))}, want: []Record{{Offset: 9, Value: []byte("x"), Size: 1}}, next: 31},
		{name: "emptied", from: 30, data: [][]byte{plain(30, 39, nil)}, next: 40},
		{name: "gap before", from: 5, data: [][]byte{plain(20, 20, x(20))}, want: []Record{{Offset: 20, Value: []byte("x"), Size: 1}}, next: 21},
		{name: "null and empty", from: 0, data: [][]byte{plain(0, 1, map[int64][]byte{0: nil, 1: {}})}, want: []Record{{Offset: 0}, {Offset: 1, Value: []byte{}}}, next: 2},
		{name: "too large", from: 0, data: [][]byte{plain(0, 0, map[int64][]byte{0: huge})}, want: []Record{{Offset: 0, Mark: markTooBig, Size: maxRecordBytes + 1}}, next: 1},
		{name: "marker", from: 3, data: [][]byte{rawBatch(3, 3, attrControl|1<<4, 0, stamps, x(3))}, want: []Record{{Offset: 3, Mark: markControl}}, next: 4},
		{name: "aborted, marker, committed", from: 0, aborted: []fetch.ResponseTransaction{{ProducerID: 7, FirstOffset: 0}},
			data: [][]byte{rawBatch(0, 0, 1<<4, compress.Lz4, stamps, x(0)), rawBatch(1, 1, attrControl|1<<4, 0, stamps, x(1)), rawBatch(2, 2, 1<<4, 0, stamps, x(2))},
			want: []Record{{Offset: 0, Mark: markAborted}, {Offset: 1, Mark: markControl}, {Offset: 2, Value: []byte("x"), Size: 1}}, next: 3},
		{name: "cut behind the first", from: 0, data: [][]byte{plain(0, 0, x(0)), plain(1, 1, x(1))[:40]}, want: []Record{{Offset: 0, Value: []byte("x"), Size: 1}}, next: 1},
		{name: "bomb", from: 11, data: [][]byte{rawBatch(10, 13, 0, compress.Zstd, stamps, map[int64][]byte{10: make([]byte, maxBatchBytes)})},
			want: []Record{{Offset: 11, Mark: markBomb, Size: maxBatchBytes}, {Offset: 12, Mark: markBomb, Size: maxBatchBytes}, {Offset: 13, Mark: markBomb, Size: maxBatchBytes}}, next: 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &answer{from: c.from, data: bytes.Join(c.data, nil), aborted: newAborted(c.aborted)}
			b := Batch{Next: c.from}
			if err := a.read(&b); err != nil {
				t.Fatal(err)
			}
			for i := range b.Records {
				b.Records[i].Time = time.Time{}
			}
			if diff := cmp.Diff(c.want, b.Records); diff != "" || b.Next != c.next {
				t.Errorf("next %d, want %d (-want +got):\n%.2000s", b.Next, c.next, diff)
			}
		})
	}
}

func TestRawBatchCodecsAndStamps(t *testing.T) {
	stamps := [2]int64{1_795_000_000_000, 1_795_000_009_000}
	large := bytes.Repeat([]byte("tide table "), inflateTwice/8)
	for _, codec := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		for _, appended := range []int16{0, attrAppended} {
			a := &answer{data: rawBatch(0, 1, appended, codec, stamps, map[int64][]byte{0: []byte("x"), 1: large}), aborted: newAborted(nil)}
			var b Batch
			if err := a.read(&b); err != nil || len(b.Records) != 2 || !bytes.Equal(b.Records[1].Value, large) {
				t.Fatalf("%v: %d records, %v", codec, len(b.Records), err)
			}
			want := stamps[0] + 1
			if appended != 0 {
				want = stamps[1]
			}
			if got := b.Records[1].Time.UnixMilli(); got != want {
				t.Errorf("%v, attributes %d: stamp %d, want %d", codec, appended, got, want)
			}
		}
	}
}

// A large answer comes in steps, and what is left goes on where the step ended.
func TestRawBatchesComeInSteps(t *testing.T) {
	value := make([]byte, 20<<20)
	var data []byte
	for i := range int64(4) {
		data = append(data, rawBatch(i, i, 0, compress.Zstd, [2]int64{1, 1}, map[int64][]byte{i: value})...)
	}
	a := &answer{data: data, aborted: newAborted(nil)}
	for _, want := range []int64{2, 4} {
		b := Batch{Next: a.from}
		if err := a.read(&b); err != nil || b.Next != want || len(b.Records) != 2 {
			t.Fatalf("next %d with %d records, want %d; %v", b.Next, len(b.Records), want, err)
		}
	}
	if len(a.data) != 0 {
		t.Errorf("%d bytes are left", len(a.data))
	}
}

// The smallest records take many times their bytes in memory: they come in steps too, within a batch.
func TestManySmallRecordsComeInSteps(t *testing.T) {
	const n = 2*maxStepRecords + 5
	values := make(map[int64][]byte, n)
	for i := range int64(n) {
		values[i] = nil
	}
	for _, codec := range []compress.Compression{compress.None, compress.Zstd} {
		a := &answer{from: 7, data: append(rawBatch(0, n-1, 0, codec, [2]int64{1, 1}, values), rawBatch(n, n, 0, 0, [2]int64{1, 1}, map[int64][]byte{n: nil})...),
			aborted: newAborted(nil)}
		next := int64(7)
		for steps := 0; !a.empty(); steps++ {
			b := Batch{Next: a.from}
			if err := a.read(&b); err != nil || len(b.Records) > maxStepRecords || steps > 3 {
				t.Fatalf("step %d: %d records, %v", steps, len(b.Records), err)
			}
			for _, r := range b.Records {
				if r.Offset != next || r.Value != nil || r.Mark != "" {
					t.Fatalf("%+v, want offset %d", r, next)
				}
				next++
			}
		}
		if next != n+1 || a.from != n+1 {
			t.Errorf("%v: read up to %d, then from %d", codec, next, a.from)
		}
	}
}

// A batch that cannot be read though its checksum is right ends as dead letters, in steps, and what its header claims
// beyond the most of them as holes. What could be read of it stays.
func TestBrokenBatchesArePassedOver(t *testing.T) {
	stamps := [2]int64{1, 1}
	good := rawBatch(0, 0, 0, 0, stamps, map[int64][]byte{0: []byte("x")})
	claims := func(data []byte, count int32) []byte {
		data = bytes.Clone(data)
		binary.BigEndian.PutUint32(data[23:], uint32(count-1))
		binary.BigEndian.PutUint32(data[57:], uint32(count))
		binary.BigEndian.PutUint32(data[17:], crc32.Checksum(data[21:], crc32.MakeTable(crc32.Castagnoli)))
		return data
	}
	torn := rawBatch(0, 4, 0, compress.Gzip, stamps, map[int64][]byte{0: []byte("x")})
	torn[len(torn)-1] ^= 1 // of the length that gzip notes
	for name, c := range map[string]struct {
		data       []byte
		rows, dead int
		next       int64
		mark       string
	}{
		"more than there are":    {claims(good, 3), 1, 2, 3, markBroken},
		"two billion":            {claims(good, 1<<31-1), 1, maxBatchDead, 1<<31 - 1, markBroken},
		"two billion of a bomb":  {claims(rawBatch(0, 0, 0, compress.Zstd, stamps, map[int64][]byte{0: make([]byte, maxBatchBytes)}), 1<<31-1), 0, maxBatchDead, 1<<31 - 1, markBomb},
		"not what gzip promised": {claims(torn, 5), 0, 5, 5, markBroken},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answer{data: c.data, aborted: newAborted(nil)}
			rows, dead := 0, 0
			for !a.empty() {
				b := Batch{Next: a.from}
				if err := a.read(&b); err != nil {
					t.Fatal(err)
				}
				if len(b.Records) > maxStepRecords {
					t.Fatalf("%d records at a time", len(b.Records))
				}
				for _, r := range b.Records {
					switch r.Mark {
					case "":
						rows++
					case c.mark:
						dead++
					}
				}
			}
			if rows != c.rows || dead != c.dead || a.from != c.next {
				t.Errorf("%d rows, %d dead letters, next %d", rows, dead, a.from)
			}
		})
	}
}

// Snappy says beforehand what it becomes; nothing is made for what cannot be.
func TestSnappyClaims(t *testing.T) {
	xerial := xerialMagic + "\x00\x00\x00\x01\x00\x00\x00\x01"
	for name, c := range map[string]struct {
		body string
		want error // nil = any
	}{
		"a block of 4 GiB":              {"\xff\xff\xff\xff\x0f\x00a", errBomb},
		"two frames that are too large": {xerial + strings.Repeat("\x00\x00\x00\x06\x80\x80\x80\x20\x00a", 2), errBomb},
		"a frame beyond the end":        {xerial + "\xff\xff\xff\xff\x01\x00a", errBatch},
		"a cut length":                  {xerial + "\x00\x00", errBatch},
		"no snappy":                     {"\x03\xff\xff\xff", nil},
	} {
		_, err := inflateSnappy([]byte(c.body))
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if out, err := inflateSnappy(nil); err != nil || len(out) != 0 {
		t.Errorf("nothing: %q, %v", out, err)
	}
}

// FuzzRawBatches: any bytes end as records in order, or as an error.
func FuzzRawBatches(f *testing.F) {
	x := map[int64][]byte{3: []byte("x"), 5: nil}
	for _, codec := range []compress.Compression{compress.None, compress.Zstd, compress.Snappy} {
		f.Add(rawBatch(3, 6, 0, codec, [2]int64{1, 2}, x), true)
	}
	f.Add(make([]byte, 70), false)
	f.Add(oldSet(0, compress.Gzip, x), false)
	f.Add(oldSet(1, compress.None, x), false)
	f.Fuzz(func(t *testing.T, data []byte, mend bool) {
		if mend && len(data) >= batchSize { // past the checksum
			size := min(len(data), 4096)
			data = bytes.Clone(data[:size])
			data[batchMagic] = 2
			binary.BigEndian.PutUint32(data[8:], uint32(size-batchPrefix))
			binary.BigEndian.PutUint32(data[23:], binary.BigEndian.Uint32(data[23:])%1000)
			binary.BigEndian.PutUint32(data[17:], crc32.Checksum(data[21:], crc32.MakeTable(crc32.Castagnoli)))
		}
		a := &answer{data: data, aborted: newAborted(nil)}
		for next := int64(0); !a.empty(); {
			b := Batch{Next: a.from}
			if err := a.read(&b); err != nil {
				return
			}
			for i := range b.Records {
				if r := &b.Records[i]; r.Offset < next || r.Offset >= b.Next || r.Mark == "" && int64(len(r.Value)) != r.Size {
					t.Fatalf("%+v", r)
				}
				next = b.Records[i].Offset + 1
			}
		}
	})
}

func TestRawBatchFaults(t *testing.T) {
	good := rawBatch(0, 1, 0, 0, [2]int64{1, 2}, map[int64][]byte{0: []byte("x"), 1: []byte("y")})
	for i := range good {
		if i < batchMagic+1 { // the offset and the length are not covered by the checksum
			continue
		}
		bad := bytes.Clone(good)
		bad[i] ^= 0x40
		var b Batch
		err := (&answer{data: bad, aborted: newAborted(nil)}).read(&b)
		if err == nil {
			t.Errorf("byte %d is changed, and nobody saw it", i)
		}
	}
	bad := bytes.Clone(rawBatch(2, 2, 0, 0, [2]int64{1, 2}, map[int64][]byte{2: []byte("z")}))
	bad[len(bad)-1] ^= 1
	a, b := &answer{data: slices.Concat(good, bad), aborted: newAborted(nil)}, Batch{}
	if err := a.read(&b); err != nil || len(b.Records) != 2 || b.Next != 2 || !a.empty() {
		t.Errorf("before a fault: %+v, %v", b, err)
	}
	if err := (&answer{from: 2, data: bad, aborted: newAborted(nil)}).read(&Batch{Next: 2}); err == nil {
		t.Error("the fault did not come again")
	}
	short := bytes.Clone(good[:batchSize-1])
	binary.BigEndian.PutUint32(short[8:], uint32(len(short)-batchPrefix))
	if err := (&answer{data: short, aborted: newAborted(nil)}).read(&Batch{}); !errors.Is(err, errBatch) {
		t.Errorf("a short header: %v", err)
	}
}
