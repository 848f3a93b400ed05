package barrier

import "time"

// Ahead sets the shard's clock forward.
func (o Options) Ahead(d time.Duration) Options {
	o.ahead = d
	return o
}
