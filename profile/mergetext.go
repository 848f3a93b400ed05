package profile

import (
	"fmt"
	"io"

	"tailgate/schemas"
)

// textWindows writes a line per window of a merged profile: what is told per window is not told for the whole.
func (p *Profile) textWindows(w io.Writer) {
	for _, win := range p.windows() {
		in := func(k schemas.ProfileKey) bool {
			return isTotal(k) && k.WindowStart.Equal(win.start) && k.WindowEnd.Equal(win.end)
		}
		part := &Profile{Meta: []schemas.ProfileMeta{{ProfileKey: schemas.ProfileKey{WindowStart: win.start, WindowEnd: win.end, Tenant: All, Class: All}}},
			IAT: p.IAT, Dispersion: p.Dispersion}
		line := fmt.Sprintf("%s for %s:", win.start.Format("2006-01-02 15:04"), seconds(win.end.Sub(win.start).Seconds()))
		if g := part.totalIAT(); g != nil {
			line += fmt.Sprintf(" %s requests  CV %s ", group3(g.N+1), opt(g.CVRaw))
		}
		line += " IDC(60 s) " + opt(part.totalIDC60())
		for _, s := range p.SessionStat {
			if in(s.ProfileKey) {
				line += fmt.Sprintf("  %s sessions, %.2f turns", group3(s.Sessions), float64(s.Turns)/float64(max(s.Sessions, 1)))
			}
		}
		for _, h := range p.HitCurve {
			if in(h.ProfileKey) && h.CapacityBlocks == nil {
				line += "  cache hit (infinite) " + opt(h.BlockHit)
			}
		}
		fmt.Fprintln(w, "window     "+line)
	}
}
