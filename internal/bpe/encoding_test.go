package bpe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKnownIds(t *testing.T) {
	for name, c := range map[string]struct {
		load func() (*Encoding, error)
		want []uint32
	}{
		"o200k":  {O200k, []uint32{13225, 2375, 0}},
		"cl100k": {Cl100k, []uint32{9906, 1917, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := c.load()
			if err != nil {
				t.Fatal(err)
			}
			ids := e.NewEncoder().Append(nil, []byte("Hello world!"))
			if d := cmp.Diff(c.want, ids); d != "" {
				t.Error(d)
			}
			if got := string(e.Decode(nil, ids)); got != "Hello world!" {
				t.Errorf("decoded %q", got)
			}
		})
	}
}
