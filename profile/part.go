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
	nodes := p.tree.nodes[1:]
	blocks := make([]schemas.ProfilePartBlock, len(nodes))
	for i, n := range nodes {
		blocks[i] = schemas.ProfilePartBlock{BlockID: n.id, Parent: int64(n.parent)}
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
		Requests: p.Requests(), Probes: l.Probes, OtherOps: l.OtherOps, Unreached: l.Unreached, Retries: l.Retries, Sampled: l.Sampled, Damaged: l.Damaged,
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
		rows[i] = r
	}
	return rows
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
	p := &LakePart{columns: newColumns(), day: a.Day, from: o.FromHour, to: o.ToHour, view: a.View, seed: uint64(a.Seed), blockSize: o.BlockSize,
		latency: newLatencies(),
		meta: trace.Meta{Format: trace.FormatLake, Unit: trace.UnitMicros, Convention: trace.ConventionCumulative, Tokenizer: a.Tokenizer,
			Epoch: a.Epoch, SHA256: a.InputsSHA256, Bytes: a.InputsBytes},
		left: leftOut{a.Probes, a.OtherOps, a.Unreached, a.Retries, a.Sampled, a.Damaged}}
	p.addModel(a.Model)
	depths, err := p.tree.restore(blocks)
	if err != nil {
		return nil, err
	}
	p.private = []int32{}
	for i := range rows {
		if rows[i].Block < 0 || rows[i].Block > int64(len(blocks)) || rows[i].PrivateBlocks < 0 {
			return nil, fmt.Errorf("row %d: no such block", i)
		}
		p.addPartRow(&rows[i], depths)
	}
	return p, p.latency.restore(latency, &p.labels)
}

func (p *LakePart) addPartRow(r *schemas.ProfilePartRow, depths []int32) {
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
}

// restore puts the nodes of a part back, as they were numbered, and tells their depths.
func (t *tree) restore(blocks []schemas.ProfilePartBlock) ([]int32, error) {
	depths := make([]int32, len(blocks)+1)
	for i, b := range blocks {
		if b.Parent < 0 || b.Parent > int64(i) {
			return nil, fmt.Errorf("block %d: no such parent", i+1)
		}
		t.reserve(1)
		if n := t.step(uint32(b.Parent), b.BlockID, hashID(b.BlockID)); n != uint32(i+1) {
			return nil, fmt.Errorf("block %d is there twice", i+1)
		}
		depths[i+1] = depths[b.Parent] + 1
	}
	return depths, nil
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
		l.of(labels.classes.code(&r.Class), r.InLo, dim)[latencyPlace(r.LoUs)] += r.N
	}
	return nil
}
