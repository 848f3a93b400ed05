package replay

import "time"

// Step is one part of a closed loop.
type Step struct {
	Slots int           // requests in flight at once, > 0
	For   time.Duration // 0 = to the end of the plan; the last step only
}

// slots are the slots of a closed loop, whose number may change at fixed instants. A slot that is taken away
// while its request is in flight goes when the request ends.
type slots struct {
	steps []Step
	ends  time.Duration   // of the step that runs; 0 = never
	free  []time.Duration // the instant at which each free slot became free, in order
	busy  int
}

// newSlots is nil for an open loop. More slots than rows are never used.
func newSlots(steps []Step, rows int) *slots {
	if len(steps) == 0 {
		return nil
	}
	s := &slots{steps: make([]Step, len(steps))}
	for i, st := range steps {
		s.steps[i] = Step{Slots: min(st.Slots, rows), For: st.For}
	}
	s.ends = s.steps[0].For
	s.fill(0)
	return s
}

// fill brings the free slots to what the step has beside the busy ones.
func (s *slots) fill(at time.Duration) {
	want := max(0, s.steps[0].Slots-s.busy)
	for len(s.free) < want {
		s.free = append(s.free, at)
	}
	s.free = s.free[:want]
}

// advance starts the steps that are due. After the last one its slots stay; the deadline ends it.
func (s *slots) advance(now time.Duration) {
	for len(s.steps) > 1 && now >= s.ends {
		at := s.ends
		s.steps = s.steps[1:]
		s.ends += s.steps[0].For
		s.fill(at)
	}
}

// next is when the next step starts.
func (s *slots) next() (time.Duration, bool) { return s.ends, len(s.steps) > 1 }

func (s *slots) release(at time.Duration) {
	s.busy--
	if s.busy+len(s.free) < s.steps[0].Slots {
		s.free = append(s.free, at)
	}
}

// take returns the instant at which the slot that waits longest became free.
func (s *slots) take() (time.Duration, bool) {
	if len(s.free) == 0 {
		return 0, false
	}
	at := s.free[0]
	s.free = s.free[1:]
	s.busy++
	return at, true
}
