//go:build !linux

package replay

import "tailgate/schemas"

// KernelClock is null: this system does not tell.
func KernelClock() *schemas.ClockOffset { return nil }
