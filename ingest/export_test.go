package ingest

// SetHook makes f the failpoint hook of o.
func SetHook(o *Options, f func(point string) error) { o.hook = f }

// SetPublishHook makes f the failpoint hook of o.
func SetPublishHook(o *PublishOptions, f func(point string) error) { o.hook = f }
