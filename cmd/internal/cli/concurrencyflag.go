package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tailgate/replay"
)

// concurrencyFlag reads the slots of a closed loop: 8, or steps such as 4:2m,8:2m,16:2m.
type concurrencyFlag []replay.Step

func (f *concurrencyFlag) String() string {
	parts := make([]string, len(*f))
	for i, s := range *f {
		parts[i] = strconv.Itoa(s.Slots)
		if s.For > 0 {
			parts[i] += ":" + s.For.String()
		}
	}
	return strings.Join(parts, ",")
}

// Type names the flag's value in the help.
func (*concurrencyFlag) Type() string { return "slots" }

// Set reads the steps.
func (f *concurrencyFlag) Set(text string) error {
	var steps concurrencyFlag
	if text == "0" {
		*f = nil
		return nil
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		number, span, timed := strings.Cut(part, ":")
		s := replay.Step{}
		var err error
		if s.Slots, err = strconv.Atoi(number); err != nil || s.Slots < 1 {
			return fmt.Errorf("%q is not a number of slots such as 8, or steps such as 4:2m,8:2m", text)
		}
		if timed {
			if s.For, err = time.ParseDuration(span); err != nil || s.For <= 0 {
				return fmt.Errorf("%q: %q is not a time such as 2m", text, span)
			}
		} else if i < len(parts)-1 {
			return fmt.Errorf("%q: every step but the last needs a time, as in 4:2m,8:2m", text)
		}
		steps = append(steps, s)
	}
	*f = steps
	return nil
}
