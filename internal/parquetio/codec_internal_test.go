package parquetio

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"

	"tailgate/internal/rng"
)

// What the codec writes of a page is what the library's own writes, and reads back as the page, one larger than the
// window included.
func TestPagesAreThoseOfTheLibrary(t *testing.T) {
	r := rng.New(1, "pages")
	for _, size := range []int{0, 1, 1000, 100_000, 200_000, pageBytes, 3 * pageBytes} {
		page := make([]byte, size)
		for i := range page { // repeats near and far
			page[i] = byte(r.IntN(4))
			if i > 70_000 && i%9 > 0 {
				page[i] = page[i-70_000]
			}
		}
		for name, codec := range map[string]*pageCodec{"pages": &pages, "small pages": &smallPages} {
			t.Run(fmt.Sprint(name, "/", size), func(t *testing.T) {
				got, err := codec.Encode(nil, page)
				if err != nil {
					t.Fatal(err)
				}
				if codec == &pages && size <= pageBytes {
					want, err := parquet.Zstd.Encode(nil, page)
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%d bytes, the library writes %d, or others", len(got), len(want))
					}
				}
				back, err := parquet.Zstd.Decode(nil, got)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(back, page) {
					t.Error("does not read back")
				}
			})
		}
	}
}
