package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"tailgate/internal/fault"
)

func TestMarksSurviveWrapping(t *testing.T) {
	base := errors.New("boom")
	inner := fault.Mark(base, fault.Data, "look at line 3")
	err := fmt.Errorf("reading a: %w", fault.Mark(inner, fault.Data, ""))
	if fault.Of(err) != fault.Data || fault.Hint(err) != "look at line 3" || !errors.Is(err, base) {
		t.Errorf("kind %v hint %q", fault.Of(err), fault.Hint(err))
	}
	if fault.Of(base) != fault.Failure || fault.Hint(base) != "" || fault.Mark(nil, fault.Key, "x") != nil {
		t.Error("unmarked errors must stay plain")
	}
}

// A hint is found behind errors that have none, in whichever order they were joined.
func TestHintOfJoinedErrors(t *testing.T) {
	none, other := fault.Mark(errors.New("a"), fault.Usage, ""), errors.New("b")
	hinted := fmt.Errorf("reading c: %w", fault.Mark(errors.New("c"), fault.Data, "mend c"))
	for _, err := range []error{errors.Join(none, other, hinted), errors.Join(hinted, none), fault.Mark(errors.Join(other, errors.Join(none, hinted)), fault.Usage, "")} {
		if got := fault.Hint(err); got != "mend c" {
			t.Errorf("hint %q of %v", got, err)
		}
	}
	if got := fault.Hint(errors.Join(none, other)); got != "" {
		t.Errorf("hint %q", got)
	}
	if got := fault.Hint(nil); got != "" {
		t.Errorf("hint %q of nothing", got)
	}
}
