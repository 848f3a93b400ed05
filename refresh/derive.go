package refresh

import (
	"context"
	"strconv"

	"tailgate/profile"
	"tailgate/schemas"
)

// lakeDay gives a published day as a folder of this machine that profile and trace read as a lake.
func (n *Night) lakeDay(ctx context.Context, day string) (lake string, drop func(), err error) {
	if _, ok := n.Root.Folder(); ok {
		return n.Root.Path(LakeFolder), func() {}, nil
	}
	local, drop, err := n.Root.localAs(ctx, lakeFolderOf(day), "day="+day)
	return local, drop, err
}

// published pins the file of a published day; nil when there is none.
func (n *Night) published(ctx context.Context, day string) (*schemas.FileDigest, error) {
	m, err := n.liveManifest(ctx, day)
	if err != nil || m == nil || len(m.Files) != 1 {
		return nil, err
	}
	return &m.Files[0], nil
}

// profile makes the profile of a day.
func (n *Night) profile(ctx context.Context, j *journal, day string) (bool, error) {
	in, err := n.published(ctx, day)
	if err != nil {
		return false, err
	}
	c := n.Config.Profile
	return n.run(ctx, j, work{day: day, step: StepProfile, inputs: digestOf(in, c, n.Tool),
		output: func() (string, error) { return n.folderDigest(ctx, ProfileFolder(day)) },
		do: func(r *StepReport) (any, error) {
			lake, drop, err := n.lakeDay(ctx, day)
			if err != nil {
				return nil, err
			}
			defer drop()
			began := n.Now().UTC()
			part, err := profile.ReadLake(ctx, lake, profile.LakeOptions{Day: day, View: c.View, BlockSize: c.BlockSize, Seed: profileSeed})
			if err != nil {
				return nil, err
			}
			if r.Rows = part.Requests(); r.Rows == 0 {
				r.State, r.Reason = StepOff, "the "+c.View+" view of the day holds no request"
				return nil, nil
			}
			p, err := part.Profile(ctx, profile.Options{PerGroup: c.PerGroup})
			if err != nil {
				return nil, err
			}
			return nil, n.Build(ctx, ProfileFolder(day), func(dir string) error {
				meta := part.Meta()
				input := schemas.FileDigest{Name: "day=" + day, Bytes: meta.Bytes, SHA256: meta.SHA256, Rows: r.Rows}
				files, err := p.Write(dir, schemas.Footer{Tool: n.Tool, Seed: strconv.Itoa(profileSeed), BlockSize: strconv.Itoa(meta.BlockSize),
					Epoch: meta.Epoch, Tokenizer: meta.Tokenizer, Inputs: schemas.InputsDigest([]schemas.FileDigest{input})})
				if err != nil {
					return err
				}
				r.Bytes = sizeOf(files)
				m := &schemas.Manifest{Kind: "profile", Tool: n.Tool, Seed: profileSeed, StartedAt: began, EndedAt: n.Now().UTC(), Epoch: meta.Epoch,
					ExpiresAt: n.expiry(day), Inputs: []schemas.FileDigest{input}, Files: files, Notes: part.Notes(),
					Settings: map[string]any{"day": day, "view": c.View, "block_size": meta.BlockSize, "per_group": c.PerGroup}}
				return m.Write(dir)
			})
		}})
}

// profileSeed is that of `tailgate profile`.
const profileSeed = 1

func sizeOf(files []schemas.FileDigest) (sum int64) {
	for _, f := range files {
		sum += f.Bytes
	}
	return sum
}
