package refresh

import "context"

// closing does the steps of the night that are not of one day.
func (n *Night) closing(ctx context.Context) error {
	return nil
}
