package waiter_test

import (
	"testing"
	"time"

	"tailgate/internal/waiter"
)

// both runs f with each waiter, on a goroutine of its own, which ends with its thread.
func both(t *testing.T, f func(w waiter.Waiter)) {
	for name, start := range map[string]func() (waiter.Waiter, error){
		"kernel": waiter.New, "runtime": func() (waiter.Waiter, error) { return waiter.NewRuntime(), nil },
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				w, err := start()
				if err != nil {
					t.Error(err)
					return
				}
				f(w)
				w.Close()
				w.Wake()
			}()
			<-done
		})
	}
}

func TestWaitEndsAtTheDeadline(t *testing.T) {
	both(t, func(w waiter.Waiter) {
		deadline := time.Now().Add(3 * time.Millisecond)
		for time.Now().Before(deadline) {
			w.Wait(deadline)
		}
		w.Wait(time.Now().Add(-time.Hour))
	})
}

func TestWakeEndsTheWait(t *testing.T) {
	both(t, func(w waiter.Waiter) {
		w.Wake()
		w.Wake()
		w.Wait(time.Time{}) // ended by the wake before
		go w.Wake()
		w.Wait(time.Time{})
		go w.Wake()
		w.Wait(time.Now().Add(time.Hour))
	})
}
