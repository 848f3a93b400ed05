package ingest

import (
	"fmt"
	"io"
	"strings"

	"tailgate/schemas"
)

// PublishReport is what one build of a day did.
type PublishReport struct {
	Day        string `json:"day"`
	Epoch      string `json:"epoch"`
	Segments   int    `json:"segments"`
	Read       int64  `json:"read"`       // rows of the day in the segments
	Rows       int64  `json:"rows"`       // rows of the build
	Duplicates int64  `json:"duplicates"` // Read − Rows
	Conflicts  int64  `json:"conflicts"`  // duplicates with different token counts

	Suppressed []Suppressed `json:"suppressed"`

	SharedBlocks   int64 `json:"shared_blocks"`   // ids that were kept
	PrivateBlocks  int64 `json:"private_blocks"`  // full blocks that became a run length
	UnknownPrompts int64 `json:"unknown_prompts"` // rows without hash_ids

	File schemas.FileDigest `json:"file"`
}

// notes words the report for the manifest.
func (r *PublishReport) notes() []string {
	notes := []string{
		fmt.Sprintf("%d rows of %d segments, %d duplicates merged, %d of them with different counts",
			r.Read, r.Segments, r.Duplicates, r.Conflicts),
		fmt.Sprintf("%d shared blocks, %d private blocks, %d rows without a known prompt",
			r.SharedBlocks, r.PrivateBlocks, r.UnknownPrompts),
	}
	for _, s := range r.Suppressed {
		if s.Labels == 0 && !s.Nulled {
			continue
		}
		note := fmt.Sprintf("%s: %d labels of %d rows merged into %q", s.Column, s.Labels, s.Rows, schemas.LabelOther)
		if s.Nulled {
			note += ", which was too small itself and left out"
		}
		notes = append(notes, note)
	}
	return notes
}

// WriteText writes the report for people.
func (r *PublishReport) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %d requests, %d bytes\n%s\n", r.Day, r.Rows, r.File.Bytes, strings.Join(r.notes(), "\n"))
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
