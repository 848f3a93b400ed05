package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// Write writes the part into dir, beside its profile, as Parquet tables from which ReadPart reads it. Profile uses the
// part up, so write it before.
func (p *LakePart) Write(dir string, f schemas.Footer) ([]schemas.FileDigest, error) {
	w := tableWriter{dir: dir, footer: f}
	writeTable(&w, schemas.TableProfilePart, []schemas.ProfilePart{p.describe()})
	writeTable(&w, schemas.TableProfilePartRow, p.partRows())
	blocks := p.tree.list(nil)
	if p.whole != nil {
		blocks = p.whole.tree.list(blocks)
	}
	writeTable(&w, schemas.TableProfilePartBlock, blocks)
	if w.err != nil {
		return nil, fmt.Errorf("writing the part: %w", w.err)
	}
	return w.files, nil
}

func (p *LakePart) describe() schemas.ProfilePart {
	l := p.left
	return schemas.ProfilePart{
		Day: p.day, FromHour: int32(p.from), ToHour: int32(p.to), View: p.view, Seed: int64(p.seed), BlockSize: int32(p.blockSize),
		InputsSHA256: p.meta.SHA256, InputsBytes: p.meta.Bytes, Tokenizer: p.meta.Tokenizer, Epoch: p.meta.Epoch, Model: p.model(),
		Requests: p.Requests(), Probes: l.Probes, OtherOps: l.OtherOps, Unreached: l.Unreached, Retries: l.Retries, Sampled: l.Sampled, Damaged: l.Damaged, Halvings: int32(p.skip),
	}
}

func (p *LakePart) partRows() []schemas.ProfilePartRow {
	known := func(v int32) *int32 {
		if v == none {
			return nil
		}
		return &v
	}
	sessions := p.named.list()
	rows := make([]schemas.ProfilePartRow, p.len())
	for i := range rows {
		k := int32(i)
		pair := p.labels.groups[p.group[i]]
		r := schemas.ProfilePartRow{
			ArrivedAt: time.UnixMicro(p.at[i]).UTC(), TimeResolutionUs: int64(p.resolutionUs[i]),
			Tenant: p.labels.tenants.words[pair.tenant], Class: p.labels.classes.words[pair.class],
			Turn: known(p.turn[i]), InputTokens: known(p.in[i]), OutputTokens: known(p.out[i]),
			Failed: p.is(k, rowFailed), PromptKnown: p.is(k, rowPrompt), Damaged: p.is(k, rowDamaged),
			Block: int64(p.leaf[i]), PrivateBlocks: p.private[i],
		}
		if s := p.session[i]; s != none {
			r.Session = new(int64(sessions[s]))
		}
		if p.whole != nil {
			r.SharedBlocks = &p.shared[i]
			if n := p.root[i]; n > 0 {
				r.FirstBlock = &p.roots.ids[n-1]
			}
			if p.whole.has.has(i) {
				r.WholeBlock = new(int64(p.whole.leaf[i]))
			}
		}
		rows[i] = r
	}
	return rows
}

// list appends the nodes. Those of a whole tree, which stand behind a sample, name their parents by their own numbers.
func (t *tree) list(to []schemas.ProfilePartBlock) []schemas.ProfilePartBlock {
	for k, n := range t.nodes[1:] {
		b := schemas.ProfilePartBlock{BlockID: n.id, Parent: int64(n.parent)}
		if t.places != nil {
			b.Place = new(int32(t.places[k+1]))
		}
		to = append(to, b)
	}
	return to
}

// ErrNoPart tells that a folder holds no part.
var ErrNoPart = errors.New("no part of a day")

// ReadPart reads a part that Write wrote into dir, with the latencies of the profile beside it. The error is
// ErrNoPart where dir holds a profile without one.
func ReadPart(dir string) (*LakePart, error) {
	var about []schemas.ProfilePart
	var rows []schemas.ProfilePartRow
	var blocks []schemas.ProfilePartBlock
	var latency []schemas.ProfileLatency
	r := tableReader{dir: dir}
	readTable(&r, schemas.TableProfilePart, &about)
	if errors.Is(r.err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", dir, ErrNoPart)
	}
	readTable(&r, schemas.TableProfilePartRow, &rows)
	readTable(&r, schemas.TableProfilePartBlock, &blocks)
	readTable(&r, schemas.TableProfileLatency, &latency)
	if r.err != nil {
		return nil, fmt.Errorf("reading the part: %w", r.err)
	}
	p, err := partOf(about, rows, blocks, latency)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("reading the part in %s: %w", dir, err), fault.Data, "profile these hours again")
	}
	p.meta.Name = filepath.ToSlash(dir)
	return p, nil
}

func partOf(about []schemas.ProfilePart, rows []schemas.ProfilePartRow, blocks []schemas.ProfilePartBlock, latency []schemas.ProfileLatency) (*LakePart, error) {
	if len(about) != 1 || about[0].Requests != int64(len(rows)) {
		return nil, errors.New("its tables do not belong together")
	}
	a := about[0]
	o := LakeOptions{Day: a.Day, FromHour: int(a.FromHour), ToHour: int(a.ToHour), View: a.View, BlockSize: int(a.BlockSize)}
	if err := o.Validate(); err != nil || a.ToHour == 0 || a.BlockSize == 0 {
		return nil, errors.Join(errors.New("it says of no hours of a day what it is"), err)
	}
	p := &LakePart{columns: newColumns(0), day: a.Day, from: o.FromHour, to: o.ToHour, view: a.View, seed: uint64(a.Seed), blockSize: o.BlockSize,
		latency: newLatencies(),
		meta: trace.Meta{Format: trace.FormatLake, Unit: trace.UnitMicros, Convention: trace.ConventionCumulative, Tokenizer: a.Tokenizer,
			Epoch: a.Epoch, SHA256: a.InputsSHA256, Bytes: a.InputsBytes},
		left: leftOut{a.Probes, a.OtherOps, a.Unreached, a.Retries, a.Sampled, a.Damaged}}
	p.addModel(a.Model)
	depths, err := p.restore(halvings(a.Halvings), blocks)
	if err != nil {
		return nil, err
	}
	p.private = []int32{}
	for i := range rows {
		if err := p.addPartRow(&rows[i], depths); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	if p.whole == nil {
		p.rootsFromTree()
	}
	return p, p.latency.restore(latency, &p.labels)
}

func (p *LakePart) addPartRow(r *schemas.ProfilePartRow, depths []int32) error {
	if r.Block < 0 || r.Block >= int64(len(depths)) || r.PrivateBlocks < 0 {
		return errors.New("no such block")
	}
	known := func(v *int32) int32 {
		if v == nil {
			return none
		}
		return *v
	}
	flags := uint8(0)
	for flag, is := range map[uint8]bool{rowFailed: r.Failed, rowPrompt: r.PromptKnown, rowDamaged: r.Damaged} {
		if is {
			flags |= flag
		}
	}
	if r.PromptKnown {
		p.meta.BlockSize = p.blockSize
	}
	session := int32(none)
	if r.Session != nil {
		session = int32(p.named.number(max(uint64(*r.Session), 1)))
	}
	p.at, p.resolutionUs = append(p.at, r.ArrivedAt.UnixMicro()), append(p.resolutionUs, clampUs(r.TimeResolutionUs))
	p.in, p.out, p.turn = append(p.in, known(r.InputTokens)), append(p.out, known(r.OutputTokens)), append(p.turn, known(r.Turn))
	p.flags, p.session = append(p.flags, flags), append(p.session, session)
	p.group = append(p.group, p.labels.group(&r.Tenant, &r.Class))
	p.leaf, p.depth, p.private = append(p.leaf, uint32(r.Block)), append(p.depth, depths[r.Block]), append(p.private, r.PrivateBlocks)
	if p.whole == nil {
		return nil
	}
	if r.SharedBlocks == nil || *r.SharedBlocks < 0 || (*r.SharedBlocks > 0) != (r.FirstBlock != nil) {
		return errors.New("a sample without the number of its blocks")
	}
	p.shared = append(p.shared, *r.SharedBlocks)
	root := []int64{}
	if r.FirstBlock != nil {
		root = append(root, *r.FirstBlock)
	}
	p.addRoot(root)
	leaf := int64(0)
	if r.WholeBlock != nil {
		if leaf = *r.WholeBlock; leaf < 0 || leaf >= int64(len(p.whole.tree.nodes)) {
			return errors.New("no such block")
		}
	}
	p.whole.add(uint32(leaf), r.WholeBlock != nil)
	return nil
}

// restore puts the nodes of a part back, as they were numbered, and tells their depths.
func (p *LakePart) restore(skip halvings, blocks []schemas.ProfilePartBlock) ([]int32, error) {
	if skip > 62 {
		return nil, fmt.Errorf("a share of 2^-%d of the blocks", skip)
	}
	n := len(blocks)
	if p.skip = skip; skip > 0 {
		for n = 0; n < len(blocks) && blocks[n].Place != nil; {
			n++
		}
		p.tree.places, p.shared, p.whole = []uint32{0}, []int32{}, &wholePrompts{tree: newTree()}
		if err := p.whole.tree.restore(blocks[n:]); err != nil {
			return nil, err
		}
	}
	if err := p.tree.restore(blocks[:n]); err != nil {
		return nil, err
	}
	return p.tree.depths(), nil
}

func (t *tree) restore(blocks []schemas.ProfilePartBlock) error {
	for i, b := range blocks {
		place := uint32(0)
		if b.Parent < 0 || b.Parent > int64(i) || b.Place != nil && *b.Place < 0 {
			return fmt.Errorf("block %d: no such parent", i+1)
		}
		if b.Place != nil {
			place = uint32(*b.Place)
		}
		t.reserve(1)
		if n := t.step(uint32(b.Parent), b.BlockID, place); n != uint32(i+1) {
			return fmt.Errorf("block %d is there twice", i+1)
		}
	}
	return nil
}

// rootsFromTree numbers the first blocks of all rows by a tree that has all blocks.
func (c *columns) rootsFromTree() {
	first := make([]uint32, len(c.tree.nodes)) // by node
	for k, n := range c.tree.nodes[1:] {
		if first[k+1] = first[n.parent]; n.parent == 0 {
			first[k+1] = uint32(k + 1)
		}
	}
	for _, leaf := range c.leaf {
		var root []int64
		if leaf > 0 {
			root = append(root, c.tree.nodes[first[leaf]].id)
		}
		c.addRoot(root)
	}
}

// restore puts counts back from the rows of the classes.
func (l *latencies) restore(rows []schemas.ProfileLatency, labels *labels) error {
	dims := map[string]int{}
	for k, dim := range latencyDims {
		dims[dim] = k
	}
	for _, r := range rows {
		if r.Class == All {
			continue
		}
		dim, ok := dims[r.Dim]
		if !ok || r.LoUs < 0 || r.LoUs >= 1<<56 || r.InLo < 0 {
			return fmt.Errorf("%s: a row that cannot be", schemas.TableProfileLatency)
		}
		l.of(labels.classes.code(&r.Class), r.InLo, dim)[latencyOctaves.place(r.LoUs)] += r.N
	}
	return nil
}
