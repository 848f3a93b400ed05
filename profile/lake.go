package profile

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"tailgate/internal/fault"
	"tailgate/trace"
)

// LakeOptions say what of a published day is profiled.
type LakeOptions struct {
	Day       string // UTC, 2006-01-02; required
	FromHour  int    // first hour of the day
	ToHour    int    // hour after the last one; 0 = to the end of the day
	View      string // trace.ViewEngine or trace.ViewClient; "" = engine
	BlockSize int    // tokens per block, a multiple of 16; 0 = 512
	Seed      uint64 // of the spreading of stamps from coarse clocks
	Threads   int    // that read at a time; 0 = as many as the program may use

	most int // different blocks that are followed; 0 = maxFollowed
}

const (
	lakeBlock  = 16 // tokens per block in the lake
	dayHours   = 24
	coarseUs   = 10_000 // a clock of at least this step is spread, as trace.Export does
	spreadName = "spread"
)

// Validate reports every fault of o.
func (o LakeOptions) Validate() error {
	var errs []error
	if err := (trace.ExportOptions{Day: o.Day, View: o.View, BlockSize: o.BlockSize}).Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.FromHour < 0 || o.ToHour < 0 || o.FromHour >= o.toHour() || o.ToHour > dayHours {
		errs = append(errs, fmt.Errorf("hours %d..%d are not a part of a day, which has 0..%d", o.FromHour, o.ToHour, dayHours))
	}
	if o.Threads < 0 {
		errs = append(errs, fmt.Errorf("threads must be >= 0, not %d", o.Threads))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (o LakeOptions) toHour() int {
	if o.ToHour == 0 {
		return dayHours
	}
	return o.ToHour
}

// LakePart is the requests of a day of a lake, or of some of its hours, in the compact columns that tables are
// computed from. What crosses a border of hours lies in them whole, so parts that follow each other make the day
// again, see JoinParts.
//
// Until it is profiled, stamps are wall times as they lie in the lake, in the lake's order.
type LakePart struct {
	*columns
	meta         trace.Meta // without a start and a length
	day          string
	from, to     int // hours
	view         string
	seed         uint64
	blockSize    int
	resolutionUs []uint32 // of the clock of each row
	turn         []int32  // or none
	latency      *latencies
	left         leftOut
	reading      atomic.Uint32 // halvings of the sample that row groups are read for
}

// leftOut counts what a view leaves out or assumes.
type leftOut struct {
	Probes, OtherOps, Unreached, Retries, Sampled, Damaged int64
}

// Requests is the number of requests in the part.
func (p *LakePart) Requests() int64 { return int64(p.len()) }

// Meta describes the part; when and how long is told by its profile.
func (p *LakePart) Meta() trace.Meta { return p.meta }

// Whole tells whether the part is a whole day.
func (p *LakePart) Whole() bool { return p.from == 0 && p.to == dayHours }

// midnightUs is the wall time at which the part's day begins.
func (p *LakePart) midnightUs() int64 {
	t, _ := time.Parse(time.DateOnly, p.day)
	return t.UnixMicro()
}

// Notes counts what the view left out or changed; the words are those of trace.Export.
func (p *LakePart) Notes() []string {
	var out []string
	prompts, _ := p.prompts()
	unknown := "requests have no known input length: the median of their class stands for it"
	if p.unknownInputs() == int64(len(p.in)) {
		unknown = "requests have no known input length, and no other has one"
	}
	for _, n := range []struct {
		n    int64
		what string
	}{
		{p.left.Probes, "probes are left out"},
		{p.left.OtherOps, "requests that are neither chat, completion nor responses are left out"},
		{p.left.Unreached, "requests never reached the engine and are left out of the engine view"},
		{p.left.Retries, "retries are left out of the client view"},
		{p.unknownInputs(), unknown},
		{p.left.Sampled, "requests come from logs that hold only a sample of the traffic: the rate is too low by that"},
		{p.left.Damaged, "requests have a prompt that was cut or redacted: behind it they share nothing here, whatever they shared"},
		{p.coarse(), "requests come from a clock coarser than 10 ms: spread over its resolution"},
		{p.sampledBlocks(), fmt.Sprintf("blocks of 1 in %d stand for all of the day, which are more than %d different ones: what is told of reuse has the error of that sample", 1<<p.skip, p.maxFollowed())},
		{prompts.lost, fmt.Sprintf("blocks of requests without a session are not followed, because they have more than %d different ones: their sessions are cut short", prompts.limit)},
	} {
		if n.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return out
}

// sampledBlocks is the number of blocks in the sample, 0 without one.
func (p *LakePart) sampledBlocks() int64 {
	if p.skip == 0 {
		return 0
	}
	return int64(p.tree.different())
}

func (p *LakePart) unknownInputs() (n int64) {
	for _, v := range p.in {
		if v == none {
			n++
		}
	}
	return n
}

func (p *LakePart) coarse() (n int64) {
	for _, r := range p.resolutionUs {
		if r >= coarseUs {
			n++
		}
	}
	return n
}

// clampUs keeps a step of a clock in 32 bits: 71 minutes are as coarse as anything above.
func clampUs(us int64) uint32 { return uint32(min(max(us, 0), math.MaxUint32)) }
