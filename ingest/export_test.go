package ingest

// SetHook makes f the failpoint hook of o.
func SetHook(o *Options, f func(point string) error) { o.hook = f }

// DecodeCount returns a function that decodes a message and counts its items.
func DecodeCount(format string) func(value []byte) int {
	o := Options{Format: format}
	decode := o.decoder()
	return func(value []byte) int {
		items := decode(value)
		for _, it := range items {
			if it.rec != nil {
				it.rec.clear()
			}
		}
		return len(items)
	}
}

// SetPublishHook makes f the failpoint hook of o.
func SetPublishHook(o *PublishOptions, f func(point string) error) { o.hook = f }
