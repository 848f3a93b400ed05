package profile

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"tailgate/schemas"
)

// parts computes the tables of the total, in a few parts, and of every group; those of the sessions for all at once.
// Parts are computed at the same time, as many as there are threads, and come in a fixed order.
func (in *input) parts(ctx context.Context, key schemas.ProfileKey, o Options) ([]*Profile, error) {
	threads := o.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	var tasks []func(p *Profile, s *scratch)
	groups := in.groups(o.PerGroup)
	in.bound(groups)
	if in.oneGroup() {
		groups = groups[:min(len(groups), 1)]
	}
	for _, g := range groups {
		own := key
		own.Tenant, own.Class = g.tenant, g.class
		if !g.total {
			tasks = append(tasks, func(p *Profile, s *scratch) {
				in, g := in.local(g, s)
				different := in.useTables(p, g, own, s)
				p.HitCurve = in.hitCurve(g, own, different, s)
				in.timeTables(p, g, own)
				in.lengthTables(p, g, own, s)
			})
			continue
		}
		tasks = append(tasks,
			func(p *Profile, s *scratch) { in.useTables(p, g, own, s) },
			func(p *Profile, s *scratch) { p.HitCurve = in.hitCurve(g, own, in.tree.different()<<in.skip, s) },
			func(p *Profile, _ *scratch) { in.timeTables(p, g, own) },
			func(p *Profile, s *scratch) { in.lengthTables(p, g, own, s) },
			func(p *Profile, _ *scratch) { in.sessionTables(p, groups, own) },
			func(p *Profile, _ *scratch) { p.CrossShare, p.Bursts = in.crossShare(own), in.bursts(own) })
	}
	free := make(chan *scratch, threads)
	for range threads {
		free <- &scratch{limits: o.hits.orDefault()}
	}
	out := make([]*Profile, len(tasks))
	all := errgroup.Group{}
	all.SetLimit(threads)
	for i, task := range tasks {
		if ctx.Err() != nil {
			break
		}
		out[i] = &Profile{}
		all.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s := <-free
			task(out[i], s)
			free <- s
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return out, ctx.Err()
}

// oneGroup tells whether all requests are of one tenant and class, whose tables are those of the total.
func (in *input) oneGroup() bool {
	return len(in.labels.groups) == 1 && in.groupBinUs == binsUs[0] && in.groupHours
}

func (in *input) timeTables(p *Profile, g group, key schemas.ProfileKey) {
	a := newArrivals(in.stamps(g), in.resolution)
	p.Rate = in.rate(g, key)
	p.Dispersion = dispersion(a.stamps, in.resolution, key)
	p.IAT, p.IATFit = a.tables(key)
}

func (in *input) lengthTables(p *Profile, g group, key schemas.ProfileKey, s *scratch) {
	p.Lengths = in.lengths(g, key, s)
	j := in.joint(g, s)
	p.Joint, p.JointStat = j.cells(key, s), j.stat(key)
}

// useTables returns the number of different blocks.
func (in *input) useTables(p *Profile, g group, key schemas.ProfileKey, s *scratch) int {
	use := in.use(g, s)
	p.Roots, p.Popularity, p.Reuse = use.rootTable(key), use.popularity(key), use.reuse(key)
	return use.different()
}
