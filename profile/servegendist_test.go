package profile

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDist(t *testing.T) {
	cases := []struct {
		name, text string
		want       []LengthProb
		says       string // of the error
	}{
		{"nothing", "", nil, ""},
		{"empty", " {} ", nil, ""},
		{"one", "{91: 1.0}", []LengthProb{{91, 1}}, ""},
		{"sorted, zeros left out", "{5:5e-1 ,\n3 : .5, 4: 0.0,}", []LengthProb{{3, .5}, {5, .5}}, ""},
		{"largest", "{2147483647: 1}", []LengthProb{{math.MaxInt32, 1}}, ""},
		{"too large", "{2147483648: 1}", nil, "offset 1: want a number of tokens"},
		{"negative", "{-1: 1}", nil, "offset 1"},
		{"float", "{1.5: 1}", nil, "offset 1"},
		{"no probability", "{1: }", nil, "offset 4: want a probability"},
		{"above 1", "{1: 1.5}", nil, "want a probability"},
		{"not a number", "{1: nan}", nil, "want a probability"},
		{"huge", "{1: 1e999}", nil, "want a probability"},
		{"twice", "{1: .5, 1: .5}", nil, "length 1 is there twice"},
		{"sum", "{1: .5, 2: .6}", nil, "sum up to 1.1"},
		{"open", "{1: 1.0", nil, "want , or }"},
		{"more", "{1: 1.0} x", nil, "offset 9: want the end"},
		{"comma alone", "{,}", nil, "offset 1"},
		{"a list", "[1]", nil, "offset 0: want {"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseDist(c.text)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want %q", err, c.says)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzServeGenDist: whatever is read is a distribution over rising lengths, and shares out every request.
func FuzzServeGenDist(f *testing.F) {
	for _, s := range []string{"{}", "{4: 7.2e-05, 5: 0.999928}", "{1: .5, 2: .5,}", "{2147483647: 1}", "{1: nan}", "__import__('os')", "{1: {2: 3}}"} {
		f.Add(s, int64(7))
	}
	f.Fuzz(func(t *testing.T, text string, n int64) {
		pdf, err := parseDist(text)
		if err != nil || len(pdf) == 0 {
			return
		}
		sum := 0.0
		for i, p := range pdf {
			if p.Tokens < 0 || i > 0 && p.Tokens <= pdf[i-1].Tokens || !(p.Prob > 0 && p.Prob <= 1) {
				t.Fatalf("%+v at %d", p, i)
			}
			sum += p.Prob
		}
		if math.Abs(sum-1) > 2*distLeeway {
			t.Fatalf("sum %g", sum)
		}
		n = (n%100_000 + 100_000) % 100_000
		total := int64(0)
		shares := shareOut(pdf, n)
		for _, p := range pdf {
			total += shares[p.Tokens]
		}
		if total != n {
			t.Fatalf("%d of %d requests", total, n)
		}
	})
}
