package analyze

import "tailgate/schemas"

// DefaultK is the number of requests below which a tenant is not reported by its name.
const DefaultK = 5

// MergeTenants gives every tenant with fewer than k requests, warm-up included, the label "other", so that no output
// of an analysis names a small one; where only one is small, the figures of "other" are its own. It returns how many
// tenants were merged; k <= 1 merges none.
func (d *Data) MergeTenants(k int) int {
	names := d.tenant.dict.Words
	if k <= 1 || len(names) == 0 {
		return 0
	}
	count := make([]int, len(names))
	for i := range int32(d.n) {
		if code := d.tenant.at(i); code >= 0 {
			count[code]++
		}
	}
	merged := 0
	var out words
	out.null = noWord
	renamed := make([]int32, len(names))
	for code, word := range names {
		if count[code] < k && word != schemas.LabelOther {
			word = schemas.LabelOther
			if count[code] > 0 {
				merged++
			}
		}
		renamed[code] = out.dict.Code([]byte(word))
	}
	for i := range int32(d.n) {
		code := d.tenant.at(i)
		if code >= 0 {
			code = renamed[code]
		}
		out.append(code, d.n)
	}
	d.tenant = out
	return merged
}
