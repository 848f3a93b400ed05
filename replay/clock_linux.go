package replay

import (
	"golang.org/x/sys/unix"

	"tailgate/schemas"
)

// KernelClock is what the kernel says of its wall clock where a time service keeps it (adjtimex(2)): the offset that
// it still has to correct, and the estimated error. It is null where nothing keeps the clock.
func KernelClock() *schemas.ClockOffset {
	const (
		timeError     = 5      // state: not synchronised
		statusNano    = 0x2000 // STA_NANO: the offset is in ns
		statusUnsync  = 0x0040 // STA_UNSYNC
		unknownErrors = 16_000_000
	)
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil || state == timeError || t.Status&statusUnsync != 0 || t.Esterror >= unknownErrors {
		return nil
	}
	offset := int64(t.Offset) //nolint:unconvert // 32 bits on some systems
	if t.Status&statusNano != 0 {
		offset /= 1000
	}
	// The kernel's offset is what is to be added to the clock.
	return &schemas.ClockOffset{OffsetUs: -offset, ErrorUs: int64(t.Esterror), Source: "kernel"} //nolint:unconvert // as above
}
