// Package deadlines keeps what ends at an instant unless something else happens first: a heap whose entries can be moved
// and taken out. It has no clock.
package deadlines

import (
	"container/heap"
	"time"
)

// Entry is a place in a queue; the zero value is in none. Its owner sets Owner once.
type Entry[T any] struct {
	Owner T
	due   time.Duration
	place int // from 1; 0 = in no queue
}

// Queue holds entries by when they are due. The zero value is empty. It is not safe for concurrent use.
type Queue[T any] struct{ h entries[T] }

// Set makes e due at the instant at, whether it was in the queue or not.
func (q *Queue[T]) Set(e *Entry[T], at time.Duration) {
	e.due = at
	if e.place == 0 {
		heap.Push(&q.h, e)
	} else {
		heap.Fix(&q.h, e.place-1)
	}
}

// Drop takes e out, if it is in.
func (q *Queue[T]) Drop(e *Entry[T]) {
	if e.place > 0 {
		heap.Remove(&q.h, e.place-1)
	}
}

// Next is when the first entry is due; false = there is none.
func (q *Queue[T]) Next() (at time.Duration, ok bool) {
	if len(q.h) == 0 {
		return 0, false
	}
	return q.h[0].due, true
}

// Pop takes out the first entry if it is due by now; false = it is not.
func (q *Queue[T]) Pop(now time.Duration) (owner T, ok bool) {
	if at, some := q.Next(); !some || at > now {
		return owner, false
	}
	return heap.Pop(&q.h).(*Entry[T]).Owner, true
}

type entries[T any] []*Entry[T]

func (h entries[T]) Len() int           { return len(h) }
func (h entries[T]) Less(i, j int) bool { return h[i].due < h[j].due }
func (h entries[T]) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i+1, j+1 }
func (h *entries[T]) Push(v any)        { e := v.(*Entry[T]); *h = append(*h, e); e.place = len(*h) }
func (h *entries[T]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = 0
	return e
}
