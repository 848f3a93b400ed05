package ingest

// SetHook makes f the failpoint hook of o.
func SetHook(o *Options, f func(point string) error) { o.hook = f }

// Decode decodes a record and returns how many requests it holds.
func Decode(format string, value []byte) int { return len(decoderOf(format)(value)) }
