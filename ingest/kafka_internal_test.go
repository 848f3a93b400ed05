package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"

	"tailgate/internal/fault"
)

// oldSet is a set of messages of format magic, compressed into one where there is a codec; a nil value is null.
func oldSet(magic byte, codec compress.Compression, values map[int64][]byte) []byte {
	one := func(offset int64, attributes byte, value []byte) []byte {
		be := binary.BigEndian
		body := []byte{magic, attributes}
		if magic == 1 {
			body = be.AppendUint64(body, uint64(1_400_000_000_000+offset))
		}
		body = append(be.AppendUint32(body, 1), 'k')
		if value == nil {
			body = be.AppendUint32(body, 1<<32-1)
		} else {
			body = append(be.AppendUint32(body, uint32(len(value))), value...)
		}
		out := be.AppendUint32(be.AppendUint64(nil, uint64(offset)), uint32(4+len(body)))
		return append(be.AppendUint32(out, crc32.ChecksumIEEE(body)), body...)
	}
	offsets := slices.Sorted(maps.Keys(values))
	var set []byte
	for _, o := range offsets {
		at := o
		if codec != compress.None && magic == 1 {
			at -= offsets[0]
		}
		set = append(set, one(at, 0, values[o])...)
	}
	if codec == compress.None {
		return set
	}
	var packed bytes.Buffer
	w := codec.Codec().NewWriter(&packed)
	_, _ = w.Write(set)
	_ = w.Close()
	return one(offsets[len(offsets)-1], byte(codec), packed.Bytes())
}

// TestOldSets: messages of the formats before 2 come out alike, compressed or not, from any offset on.
func TestOldSets(t *testing.T) {
	values := map[int64][]byte{40: []byte("a"), 41: nil, 43: {}, 44: make([]byte, maxRecordBytes+1), 45: []byte("b")}
	want := []Record{{Offset: 40, Value: []byte("a"), Size: 1}, {Offset: 41}, {Offset: 43, Value: []byte{}},
		{Offset: 44, Mark: markTooBig, Size: maxRecordBytes + 1}, {Offset: 45, Value: []byte("b"), Size: 1}}
	for _, magic := range []byte{0, 1} {
		for _, codec := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy} {
			for from := int64(38); from <= 46; from++ {
				data := append(oldSet(magic, codec, values), oldSet(magic, 0, map[int64][]byte{47: []byte("c")})...)
				a := &answer{from: from, data: append(data, data[:30]...), aborted: newAborted(nil)}
				b := Batch{Next: from}
				for !a.empty() {
					if err := a.read(&b); err != nil {
						t.Fatal(err)
					}
				}
				for i := range b.Records {
					if r := &b.Records[i]; magic == 1 && r.Time.UnixMilli() != 1_400_000_000_000+r.Offset-firstOf1(codec, r.Offset) || magic == 0 && !r.Time.IsZero() {
						t.Errorf("offset %d: %v", r.Offset, r.Time)
					}
					b.Records[i].Time = time.Time{}
				}
				wanted := append(slices.Clone(want), Record{Offset: 47, Value: []byte("c"), Size: 1})
				wanted = slices.DeleteFunc(wanted, func(r Record) bool { return r.Offset < from })
				if diff := cmp.Diff(wanted, b.Records); diff != "" || b.Next != 48 {
					t.Errorf("format %d, %v, from %d: next %d %.500s", magic, codec, from, b.Next, diff)
				}
			}
		}
	}
}

// firstOf1 is what oldSet takes off the offset of a message before it stamps it.
func firstOf1(codec compress.Compression, offset int64) int64 {
	if codec == compress.None || offset == 47 {
		return 0
	}
	return 40
}

// A set that inflates to a bomb, or is none, is passed over up to its offset; one whose checksum is wrong is an error.
func TestOldSetsThatCannotBeRead(t *testing.T) {
	bomb := map[int64][]byte{7: make([]byte, maxBatchBytes/2), 8: make([]byte, maxBatchBytes/2), 9: make([]byte, 1)}
	torn := oldSet(1, compress.Gzip, map[int64][]byte{7: []byte("a"), 9: []byte("b")})
	torn[len(torn)-1] ^= 1
	binary.BigEndian.PutUint32(torn[12:], crc32.ChecksumIEEE(torn[16:]))
	for mark, data := range map[string][]byte{markBomb: oldSet(1, compress.Gzip, bomb), markBroken: torn} {
		a := &answer{from: 5, data: append(oldSet(1, 0, map[int64][]byte{6: []byte("x")}), data...), aborted: newAborted(nil)}
		b := Batch{Next: 5}
		for !a.empty() {
			if err := a.read(&b); err != nil {
				t.Fatal(err)
			}
		}
		marks := ""
		for _, r := range b.Records {
			marks += fmt.Sprintf("%d%s ", r.Offset, r.Mark)
		}
		if want := strings.ReplaceAll("6 7M 8M 9M ", "M", mark); marks != want || b.Next != 10 {
			t.Errorf("%s, want %s; next %d", marks, want, b.Next)
		}
	}
	torn[20] ^= 1
	if err := (&answer{data: torn, aborted: newAborted(nil)}).read(&Batch{}); err == nil || !strings.Contains(err.Error(), "crc32") {
		t.Errorf("a wrong checksum: %v", err)
	}
}

func TestFetchErrorsThatAnotherTryCannotMend(t *testing.T) {
	corrupt := fetchError(Partition{Topic: "tides"}, 3, errors.New("crc32 checksum mismatch (computed=1 found=2)"))
	if fault.Of(corrupt) != fault.Data {
		t.Errorf("a corrupt batch: %v", corrupt)
	}
	if gone := fetchError(Partition{Topic: "tides"}, 3, kafka.OffsetOutOfRange); !errors.Is(gone, ErrOutOfRange) {
		t.Errorf("a deleted offset: %v", gone)
	}
	if moved := fetchError(Partition{Topic: "tides"}, 3, kafka.NotLeaderForPartition); fault.Of(moved) == fault.Data {
		t.Errorf("a moved leader: %v", moved)
	}
}
