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
