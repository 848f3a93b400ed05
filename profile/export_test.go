package profile

// Following lowers the number of blocks that are followed, above which there is a sample.
func (o LakeOptions) Following(most int) LakeOptions {
	o.most = most
	return o
}

// Following is that of a trace.
func (o Options) Following(most int) Options {
	o.most = most
	return o
}

// Following lowers the number for a part that was read from its tables.
func (p *LakePart) Following(most int) { p.most = most }

// Halvings tells the share of the blocks that are followed.
func (p *LakePart) Halvings() int { return int(p.skip) }
