package openai

import (
	"context"
	"crypto/rand"
	"net/http"

	"golang.org/x/sync/errgroup"
)

// saltInput is enough for some whole blocks of any engine's cache.
const saltInput = 1024

// salts find out whether cache_salt parts the blocks of one run from those of another, by the cached tokens
// that usage tells: a repeat must hit, and a repeat with another salt must not. Where that cannot be seen the
// salt stays in the prompts, which always works.
type salts struct {
	l          *learner
	writer     writer
	size       int32
	one, other string
	first      *tried // nil = not asked yet
}

// newSalts is nil where there is nothing to find out.
func (l *learner) newSalts() *salts {
	takes := l.about.engine.takes[l.writer.api]&fieldSalt != 0
	if !takes || l.client.opts.wanted()&fieldSalt == 0 {
		return nil
	}
	s := &salts{l: l, writer: l.writer, size: saltInput, one: "tailgate-" + rand.Text(), other: "tailgate-" + rand.Text()}
	s.writer.fields |= fieldSalt
	if l.about.length > 0 {
		s.size = min(s.size, int32(l.about.length/2))
	}
	return s
}

// warm sends the prompt whose repeats tell.
func (s *salts) warm(ctx context.Context) (err error) {
	if s != nil {
		s.first, err = s.try(ctx, s.one)
	}
	return err
}

func (s *salts) try(ctx context.Context, salt string) (*tried, error) {
	w := s.writer
	w.salt = salt
	return s.l.try(ctx, w, rowSalt, s.size)
}

func (s *salts) conclude(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if s.first == nil {
		if err := s.warm(ctx); err != nil {
			return err
		}
	}
	again, apart := s.first, s.first
	if s.first.status == http.StatusOK {
		g, gctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) {
			again, err = s.try(gctx, s.one)
			return err
		})
		g.Go(func() (err error) {
			apart, err = s.try(gctx, s.other)
			return err
		})
		if err := g.Wait(); err != nil {
			return err
		}
	}
	report := s.l.report
	switch {
	case again.status != http.StatusOK || apart.status != http.StatusOK:
		report["cache_salt"] = "refused"
	case again.out.Usage.Cached <= 0:
		report["cache_salt"] = "unknown" // no cache, or it is not told
	case apart.out.Usage.Cached > 0:
		report["cache_salt"] = "ignored"
	default:
		report["cache_salt"], s.l.saltWorks = "used", true
	}
	return nil
}
