package analyze

import (
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// DefaultK is the number of requests below which a tenant is not reported by its name.
const DefaultK = 5

// MergeTenants gives every tenant with fewer than k requests, warm-up included, the label "other", so that no output
// of an analysis names a small one or tells its figures. It returns how many tenants were merged; k <= 1 merges none.
func (d *Data) MergeTenants(k int) int {
	if k <= 1 || d.tenant.v == nil {
		return 0
	}
	words := d.tenant.dict.Words
	count := make([]int, len(words))
	for _, code := range d.tenant.v {
		if code >= 0 {
			count[code]++
		}
	}
	var dict parquetio.Dict
	renamed := make([]int32, len(words))
	merged := 0
	for code, word := range words {
		if count[code] < k && word != schemas.LabelOther {
			word = schemas.LabelOther
			if count[code] > 0 {
				merged++
			}
		}
		renamed[code] = dict.Code([]byte(word))
	}
	for i, code := range d.tenant.v {
		if code >= 0 {
			d.tenant.v[i] = renamed[code]
		}
	}
	d.tenant.dict = dict
	return merged
}
