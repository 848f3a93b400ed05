package cli

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"tailgate/internal/fault"
	"tailgate/profile"
	"tailgate/trace"
)

// shareFlags make a trace fit to leave the house.
type shareFlags struct {
	on, distorted bool
	k             int
	classes       []string
}

func (f *shareFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.on, "share", false, "make a copy that may be given to others: new ids and names, coarse lengths, a secret shift in time, small groups merged")
	fl.IntVar(&f.k, "share-k", 0, "smallest group that a shared trace tells apart (default 5)")
	fl.StringSliceVar(&f.classes, "share-classes", nil, "class names that a shared trace keeps (default: the built-in ones)")
	fl.BoolVar(&f.distorted, "allow-distorted", false, "with --share: write the copy also when it is too unlike its source to be trusted")
}

// What a shared trace may differ in from its source.
const (
	shareHit  = 0.01
	shareKS   = 0.02
	shareTail = 0.02
	shareMean = 0.01
)

// share returns t as it is without --share. With it, a copy that may leave the house; the copy is compared with its
// source, and refused where it is too unlike it.
func (a *app) share(t *trace.Trace, f *shareFlags) (*trace.Trace, error) {
	if !f.on {
		return t, nil
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	out, rep, err := t.Share(trace.ShareOptions{Secret: binary.BigEndian.Uint64(b[:]) | 1, K: f.k, Classes: f.classes})
	if err != nil {
		return nil, err
	}
	if bad := out.Check(); len(bad) > 0 {
		return nil, broken(out, bad)
	}
	a.note("shared: k %d; %d of %d blocks held by 2 to %d sessions are told apart by session; tenant hidden in %d rows, class in %d",
		rep.K, rep.PrivateBlocks, rep.Blocks, rep.K-1, rep.TenantRows, rep.ClassRows)
	a.note("shared: lengths on a grid, input cut at %d in %d rows, output at %d in %d; %d of %d rows have lengths that fewer than %d share",
		rep.TopInput, rep.CutInputs, rep.TopOutput, rep.CutOutputs, rep.RareLengths, rep.Rows, rep.K)
	c := profile.Compare(t, out)
	faults := unlike(c, &rep)
	a.note("shared: KS of lengths on the grid %.4f in, %.4f out (%s and %s against the bare lengths); block hit %s", rep.KSInput, rep.KSOutput,
		told(c.Input.KS), told(c.Output.KS), hitText(c))
	if len(faults) == 0 || f.distorted {
		for _, err := range faults {
			a.note("shared: %v", err)
		}
		return out, nil
	}
	return nil, fault.Mark(fmt.Errorf("sharing %s: %w", t.Meta.Name, errors.Join(faults...)), fault.Failure,
		"--allow-distorted writes it all the same")
}

// unlike lists what differs too much.
func unlike(c *profile.Comparison, rep *trace.ShareReport) []error {
	var errs []error
	check := func(what string, off, limit float64) {
		if off > limit {
			errs = append(errs, fmt.Errorf("%s is off by %.3g, the limit is %g", what, off, limit))
		}
	}
	for _, l := range []struct {
		name string
		ks   float64
		profile.LengthPair
	}{{"input_length", rep.KSInput, c.Input}, {"output_length", rep.KSOutput, c.Output}} {
		check("the distribution (KS) of "+l.name, l.ks, shareKS)
		check("the mean of "+l.name, relative(l.Mean), shareMean)
		check("the p99 of "+l.name, relative(l.P99), shareTail)
	}
	if h := worstHit(c); h != nil {
		what := fmt.Sprintf("the block hit of an LRU cache of %d blocks", h.Capacity)
		if h.Capacity == 0 {
			what = "the block hit of an endless cache"
		}
		check(what, math.Abs(*h.B-*h.A), shareHit)
	}
	return errs
}

// relative is the distance of B from A as a share of A; 0 where one is not told.
func relative(p profile.Pair) float64 {
	if p.A == nil || p.B == nil || *p.A == 0 {
		return 0
	}
	return math.Abs(*p.B / *p.A - 1)
}

// worstHit is the capacity at which the hit ratios differ most; nil when there are none.
func worstHit(c *profile.Comparison) *profile.HitPair {
	var worst *profile.HitPair
	for i := range c.Hits {
		h := &c.Hits[i]
		if worst == nil || math.Abs(*h.B-*h.A) > math.Abs(*worst.B-*worst.A) {
			worst = h
		}
	}
	return worst
}

// hitText tells the hit ratios where they differ most.
func hitText(c *profile.Comparison) string {
	h := worstHit(c)
	if h == nil {
		return "not told (no blocks)"
	}
	return fmt.Sprintf("%.4f for %.4f where they differ most", *h.B, *h.A)
}

func told(x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *x)
}

func (a *app) traceCompareCommand() *cobra.Command {
	var tf traceFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Hold two traces against each other: rate, lengths, burstiness, sessions, prefix reuse, tenants",
		Long: `Prints the figures of two traces side by side: rate, lengths, burstiness, sessions, prefix reuse, tenants. It does not
judge them; the flags hold for both.

Exit codes: 0 done; 1 unreadable; 2 wrong usage; 6 a broken file.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var both [2]*trace.Trace
			for i, path := range args {
				t, err := a.load(cmd.Context(), path, &tf)
				if err != nil {
					return err
				}
				both[i] = t
			}
			c := profile.Compare(both[0], both[1])
			if asJSON {
				return a.printJSON(c)
			}
			c.WriteText(a.stdout)
			return nil
		},
	}
	tf.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
