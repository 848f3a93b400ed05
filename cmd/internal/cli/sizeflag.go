package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// sizeFlag reads a number of bytes: 512, 64KiB, 256MiB, 2GiB, 1.5GB.
type sizeFlag int64

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

func (s *sizeFlag) String() string {
	for i := 3; i >= 0; i-- {
		if u := int64(sizeUnits[i].bytes); int64(*s) >= u && int64(*s)%u == 0 {
			return strconv.FormatInt(int64(*s)/u, 10) + sizeUnits[i].suffix
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type names the flag's value in the help.
func (*sizeFlag) Type() string { return "size" }

// Set reads a size.
func (s *sizeFlag) Set(text string) error {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v >= 0) || v*u.bytes >= 1<<62 {
			break
		}
		*s = sizeFlag(v * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 256MiB", text)
}
