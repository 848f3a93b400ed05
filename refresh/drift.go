package refresh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"

	"tailgate/internal/parquetio"
	"tailgate/profile"
	"tailgate/schemas"
)

// readProfile reads the profile of a day; nil when it is not there.
func (n *Night) readProfile(ctx context.Context, day string) (*profile.Profile, error) {
	whole, err := n.folderDigest(ctx, ProfileFolder(day))
	if err != nil || whole == "" {
		return nil, err
	}
	dir, drop, err := n.Root.Local(ctx, ProfileFolder(day))
	if err != nil {
		return nil, err
	}
	defer drop()
	return profile.Read(dir)
}

// drift holds the day's profile against that of the last good day before it.
func (n *Night) drift(ctx context.Context, j *journal, day string) (bool, error) {
	ref, err := n.goodBefore(ctx, day)
	if err != nil {
		return false, err
	}
	var profiles [2]string
	for i, d := range []string{ref, day} {
		if d == "" {
			continue
		}
		if profiles[i], err = n.folderDigest(ctx, ProfileFolder(d)); err != nil {
			return false, err
		}
	}
	key := path.Join(ReportFolder(day), driftName)
	return n.run(ctx, j, work{day: day, step: StepDrift, inputs: digestOf(ref, profiles, n.Config.Drift, n.Tool),
		output: func() (string, error) { return n.fileDigest(ctx, key) },
		do: func(r *StepReport) (any, error) {
			status := &DriftStatus{Against: ref, Drifted: []string{}}
			if ref == "" || profiles[1] == "" {
				r.State, r.Reason = StepOff, "no earlier good day to compare with"
				if profiles[1] == "" {
					r.Reason = "the day has no profile"
				}
				return status, nil
			}
			before, err := n.readProfile(ctx, ref)
			if err != nil {
				return nil, err
			}
			now, err := n.readProfile(ctx, day)
			if err != nil {
				return nil, err
			}
			rows := profile.Drift(before, now, n.Config.Drift.Limits)
			status.Metrics = len(rows)
			for i := range rows {
				if rows[i].Flag {
					status.Drifted = append(status.Drifted, rows[i].Metric)
				}
			}
			r.Rows = int64(len(rows))
			return status, n.writeDrift(ctx, day, key, rows)
		}})
}

// writeDrift writes the rows as a table, and as JSON.
func (n *Night) writeDrift(ctx context.Context, day, key string, rows []schemas.ProfileDrift) error {
	var table bytes.Buffer
	w := parquetio.NewWriterFor[schemas.ProfileDrift](&table, schemas.Footer{Schema: schemas.TableProfileDrift, Tool: n.Tool}.Map(), int64(len(rows)))
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		return fmt.Errorf("writing the drift: %w", err)
	}
	if err := n.Replace(ctx, path.Join(ReportFolder(day), driftTable), table.Bytes()); err != nil {
		return err
	}
	text, err := schemas.JSONList(rows)
	if err != nil {
		return fmt.Errorf("writing the drift: %w", err)
	}
	return n.Replace(ctx, key, text)
}
