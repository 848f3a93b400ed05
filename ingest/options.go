package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/prompt"
	"tailgate/schemas"
)

// Anonymizer replaces raw values by keyed ids. It is safe for concurrent use.
type Anonymizer interface {
	// Token gives one letter, "_" and 13 lower-case base32 characters. Kinds: tenant, session, request, model,
	// topic, clock, record.
	Token(kind string, value []byte) string
	// Key gives a keyed 63-bit id of the parts. Kinds: request, record, unique, and
	// prehash for block ids that came hashed.
	Key(kind string, parts ...[]byte) int64
	// Blocks appends the chained ids of all full 16-token blocks of p and, when there is a partial tail, its
	// id; tokens is the anonymizer's own count. Of a prompt that was not logged whole it gives and counts only
	// the full blocks before the first damaged message.
	Blocks(ids []int64, p *prompt.Prompt) (out []int64, tokens int, err error)
}

// blockSize is the number of tokens in a block of the lake.
const blockSize = 16

// Options of [Run].
type Options struct {
	Format     string       // one of [Formats], or FormatMapped with a Mapping
	Mapping    *Mapping     // nil = Format is native or shipped
	Lake       string       // folder of the lake; made when missing
	Bucket     *objstore.S3 // lake on an object store, instead of Lake
	Anonymizer Anonymizer   // required: no key, no run
	// ByDay gives what the rows of a UTC day of arrival are made with, so that a day keeps one epoch wherever its rows
	// are logged; Anonymizer then names topics and dead letters. It gives the same for a day throughout a run, and may
	// be called concurrently. nil = Anonymizer and the footer's epoch for all days.
	ByDay   func(day string) (DayKeys, error)
	Footer  schemas.Footer // epoch, tokenizer and tool version; block size "" means 16
	Classes *ClassRules    // nil = the default rules
	Exclude *ExcludeRules  // requests that are dropped before hashing, counted; nil = none
	Models  []string       // model names that may be written as they are; others become m_ tokens
	MaxBad  float64        // share of records that may be dead letters; 0 = 1 %

	ValueCodec     string // of the records' values: a Codec… constant; "" = CodecAuto
	MaxRecordBytes int64  // larger records are dead letters, also after decompression; 0 = 32 MiB, the most

	RotateRows  int64         // rows of a segment; 0 = 250,000
	RotateBytes int64         // bytes of a segment's rows in memory; 0 = 128 MiB
	RotateAge   time.Duration // age of a segment since its first record; 0 = 60 s

	Memory  int64 // bytes of all open segments together; 0 = 256 MiB
	MinFree int64 // bytes that the disk must have free before a segment is begun; 0 = 2 GiB, below 0 = any

	// A run ends at the mark taken at its start, unless one of these says otherwise.
	UntilEnd bool      // go on until the source has nothing more
	Until    time.Time // end at the first record that the log took at this time or later; Kafka only
	Proof    bool      // with Until: take that record too, by which publish knows that the log was read so far
	Follow   bool      // do not end; Kafka only

	// Log reads into a log of its own, beside what was read of the source before: a second reading, for a backfill.
	// Where that log is new it begins at the first record that the source took at From or later (Kafka), and it keeps
	// the rows of OnlyDay alone; others are counted as skipped.
	Log     string // "" = the source's own log
	From    time.Time
	OnlyDay string // 2006-01-02; "" = all days

	Worker, Workers int // this run takes the partitions of worker Worker (from 0) of Workers; 0 of 0 = all

	// Distribute shares the partitions with all runs of the same Group; Kafka only. The group hands them out, the
	// files decide where to go on. A run to a mark ends when all partitions have come to it, whoever reads them.
	Distribute bool

	Deep        bool // read the footers of all segments at the start, not only the last of each partition
	AllowGap    bool // go on after offsets that retention deleted unread, and count them
	AcceptReset bool // start a new generation when the topic or file was recreated

	Group      string         // consumer group that is told the position; "" = none
	Stall      time.Duration  // give up when nothing came for so long although there is more; 0 = 3 minutes
	Logger     *slog.Logger   // nil = discard
	OnProgress func(Progress) // called now and then, not concurrently; nil = not

	beforeDecode func(value []byte) // called by tests before each message is decoded

	hook func(point string) error // failpoints of the tests; nil = none
	wrap func(store) store        // what tests put around the store; nil = nothing
	now  func() time.Time         // clock of the rotation; nil = time.Now
	free func(dir string) (int64, error)

	watchMemory func(by int64) // told how the memory of segments changes; nil = not
}

// Progress is a look at a running ingest.
type Progress struct {
	Elapsed time.Duration
	Records int64 // offsets consumed
	Bytes   int64 // bytes of messages consumed
	Rows    int64
	Dead    int64
	Behind  int64 // offsets left to the marks, or to the ends of the log when it is followed; -1 when not known

	Segments  int64 // published
	Conflicts int64 // given up because another writer had them
	Buffered  int64 // bytes of rows that open segments hold in memory

	Clocks []ClockLag // of the latest records, the most skewed first
}

// Validate reports every fault of o.
func (o *Options) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.decoder() == nil || (o.Format == FormatMapped) != (o.Mapping != nil) {
		errs = append(errs, unknownFormat(o.Format))
	}
	if o.Lake == "" && o.Bucket == nil {
		add("lake folder is missing")
	}
	if o.Anonymizer == nil {
		add("anonymizer is missing")
	}
	if b := o.Footer.BlockSize; b != "" && b != "16" {
		add("block size of the lake must be 16, not %q", b)
	}
	if o.MaxBad < 0 || o.MaxBad > 1 {
		add("max-bad must lie in [0, 1], not %v", o.MaxBad)
	}
	errs = append(errs, o.CheckLimits())
	for _, m := range o.Models {
		if !validLabel(m) {
			add("model label %q must have 1 to 128 printable characters", m)
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func validLabel(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) < 0
}

// withDefaults replaces the zero values that stand for something else.
func (o Options) withDefaults() Options {
	o.Footer.Schema = schemas.TableSegment
	o.Footer.BlockSize = "16"
	if o.Classes == nil {
		o.Classes = DefaultClasses()
	}
	o.MaxBad = or(o.MaxBad, 0.01)
	o.ValueCodec = or(o.ValueCodec, CodecAuto)
	o.MaxRecordBytes = or(o.MaxRecordBytes, maxRecordBytes)
	o.RotateRows = or(o.RotateRows, 250_000)
	o.RotateBytes = or(o.RotateBytes, 128<<20)
	o.RotateAge = or(o.RotateAge, time.Minute)
	o.Memory = or(o.Memory, 256<<20)
	o.MinFree = or(o.MinFree, 2<<30)
	o.Stall = or(o.Stall, 3*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.free == nil {
		o.free = atomicfile.Free
	}
	if o.hook == nil {
		o.hook = func(string) error { return nil }
	}
	return o
}

// lake is the store that the options name.
func (o *Options) lake() store {
	var s store = storeOf(o.Lake, o.Bucket)
	if o.wrap != nil {
		s = o.wrap(s)
	}
	return s
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
