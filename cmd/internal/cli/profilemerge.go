package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"tailgate/internal/version"
	"tailgate/profile"
	"tailgate/schemas"
)

func (a *app) profileMergeCommand() *cobra.Command {
	var out, days string
	var asJSON, perGroup bool
	cmd := &cobra.Command{
		Use:   "merge DIR… -o DIR",
		Short: "Put the profiles of several days, or of the hours of a day, together",
		Long: `Rate, lengths, joint lengths and latencies are summed; gaps, dispersion, sessions, prefix reuse and hit curves stay one set of rows
per day. The order of the folders does not matter, and merged profiles merge again.

Profiles of hours (profile --hours) of one day are joined in the order of time: the result is the profile of the day, or of the
hours that are there, to the last digit. A missing hour is an error.

Exit codes: 0 done; 1 unreadable or unfinished; 2 wrong usage, windows that overlap; 6 a broken file, other blocks or another tokenizer.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := newProfileDir(cmd, out); err != nil {
				return err
			}
			args, err := dayFolders(args, days)
			if err != nil {
				return usage(err, helpHint(cmd))
			}
			defer spareMemory(100)()
			started := now()
			in, err := a.mergeInputs(args)
			if err != nil {
				return err
			}
			m := &schemas.Manifest{Kind: "profile", StartedAt: started, Inputs: in.digests, Settings: map[string]any{"merge": true}}
			p, err := a.merged(cmd.Context(), in, out, perGroup, m)
			if err != nil {
				return err
			}
			if err := writeProfileDir(p, out, m); err != nil {
				return err
			}
			for _, n := range m.Notes {
				a.note("%s", n)
			}
			return a.showProfile(p, asJSON, "")
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "folder to write the tables into")
	cmd.Flags().StringVar(&days, "days", "", "FROM..TO: of each DIR, the folders day=… of these days; one that is missing is an error")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the total's tables as one JSON object")
	cmd.Flags().BoolVar(&perGroup, "per-group", true, "of joined hours: also per tenant and class")
	return cmd
}

// dayFolders puts the folders of the days in the place of each folder; without days they stay.
func dayFolders(dirs []string, days string) ([]string, error) {
	if days == "" {
		return dirs, nil
	}
	list, err := parseDays(days)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range dirs {
		for _, day := range list {
			out = append(out, filepath.Join(dir, "day="+day))
		}
	}
	return out, nil
}

// mergeInputs are the profiles to merge, and the parts of days to join.
type mergeInputs struct {
	profiles []*profile.Profile
	parts    []*profile.LakePart
	digests  []schemas.FileDigest
}

func (a *app) mergeInputs(dirs []string) (*mergeInputs, error) {
	in := &mergeInputs{}
	for _, dir := range dirs {
		p, digest, err := finishedProfile(dir)
		if err != nil {
			return nil, err
		}
		in.digests = append(in.digests, digest)
		part, err := profile.ReadPart(dir)
		switch {
		case errors.Is(err, profile.ErrNoPart):
			in.profiles = append(in.profiles, p)
		case err != nil:
			return nil, err
		default:
			in.parts = append(in.parts, part)
		}
	}
	return in, nil
}

// merged joins the parts of each day and merges what there is. Where that is some hours of one day, the result can be
// joined again: its part is written into out.
func (a *app) merged(ctx context.Context, in *mergeInputs, out string, perGroup bool, m *schemas.Manifest) (*profile.Profile, error) {
	days, ordered, err := profile.JoinDays(in.parts)
	if err != nil {
		return nil, err
	}
	if !ordered {
		a.note("the hours were given in another order than that of time, and joined in that of time")
	}
	var notes []string
	for _, day := range days {
		notes = append(notes, day.Notes()...)
		if len(days) == 1 && len(in.profiles) == 0 && !day.Whole() {
			d := &profiled{meta: day.Meta(), rows: day.Requests()}
			if m.Files, err = writePart(day, out, d, 0); err != nil {
				return nil, err
			}
		}
		p, err := day.Profile(ctx, profile.Options{PerGroup: perGroup})
		if err != nil {
			return nil, err
		}
		in.profiles = append(in.profiles, p)
	}
	if len(days) == 1 && len(in.profiles) == 1 {
		m.Notes = notes
		return in.profiles[0], nil
	}
	p, err := profile.Merge(in.profiles)
	if err != nil {
		return nil, err
	}
	m.Notes = append(notes, p.MergeNotes()...)
	return p, nil
}

// newProfileDir refuses a missing -o and a folder that holds a finished profile.
func newProfileDir(cmd *cobra.Command, out string) error {
	if out == "" {
		return usage(errors.New("-o is missing"), helpHint(cmd))
	}
	if _, err := schemas.ReadManifest(out); err == nil {
		return usage(fmt.Errorf("%s holds a finished profile", out), "give a new folder")
	}
	return nil
}

// finishedProfile reads a profile and pins it by its manifest, which has the digests of its tables.
func finishedProfile(dir string) (*profile.Profile, schemas.FileDigest, error) {
	input, err := schemas.DigestFile(dir, filepath.Join(dir, schemas.ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, input, fmt.Errorf("reading %s: no finished profile (%s is missing)", dir, schemas.ManifestName)
	}
	if err != nil {
		return nil, input, err
	}
	p, err := profile.Read(dir)
	if err != nil {
		return nil, input, fmt.Errorf("reading %s: %w", dir, err)
	}
	input.Name, input.Rows = filepath.Base(dir), p.Meta[0].Requests
	return p, input, nil
}

// writeProfileDir writes a profile that was not made from one trace, and its manifest, which it completes.
func writeProfileDir(p *profile.Profile, dir string, m *schemas.Manifest) error {
	meta := p.Meta[0]
	files, err := p.Write(dir, schemas.Footer{Tool: version.String(), BlockSize: fmt.Sprint(meta.BlockSize), Tokenizer: meta.Tokenizer,
		Epoch: meta.Epoch, Inputs: schemas.InputsDigest(m.Inputs)})
	if err != nil {
		return err
	}
	m.Tool, m.EndedAt, m.Files = version.String(), now(), append(m.Files, files...)
	return m.Write(dir)
}
