package cli

import (
	"context"
	"errors"

	"tailgate/refresh"
)

// refreshPlan prints what a night will take.
func (a *app) refreshPlan(ctx context.Context, o *refresh.Options, f *refreshFlags) error {
	p, err := refresh.MakePlan(ctx, *o)
	if err != nil {
		return err
	}
	if f.asJSON {
		err = a.printJSON(p)
	} else {
		err = p.WriteText(a.stdout)
	}
	return errors.Join(err, p.Refusal())
}
