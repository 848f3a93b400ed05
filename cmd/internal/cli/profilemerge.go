package cli

import (
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
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge DIR… -o DIR",
		Short: "Put the profiles of several days together",
		Long: `Rate, lengths and joint lengths are summed; gaps, dispersion, sessions, prefix reuse and hit curves stay one set of rows per
day. The order of the folders does not matter, and merged profiles merge again.

Exit codes: 0 done; 1 unreadable or unfinished; 2 wrong usage, windows that overlap; 6 a broken file, other blocks or another tokenizer.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := newProfileDir(cmd, out); err != nil {
				return err
			}
			started := now()
			var parts []*profile.Profile
			var inputs []schemas.FileDigest
			for _, dir := range args {
				p, input, err := finishedProfile(dir)
				if err != nil {
					return err
				}
				parts, inputs = append(parts, p), append(inputs, input)
			}
			p, err := profile.Merge(parts)
			if err != nil {
				return err
			}
			m := &schemas.Manifest{Kind: "profile", StartedAt: started, Inputs: inputs, Notes: p.MergeNotes(), Settings: map[string]any{"merge": true}}
			if err := writeProfileDir(p, out, m); err != nil {
				return err
			}
			for _, n := range m.Notes {
				a.note("%s", n)
			}
			return a.showProfile(p, asJSON)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "folder to write the tables into")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the total's tables as one JSON object")
	return cmd
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
	m.Tool, m.EndedAt, m.Files = version.String(), now(), files
	return m.Write(dir)
}
