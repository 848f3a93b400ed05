package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// generationName is the object by which a run claims a generation: what was read once from a pipe cannot be
// read on.
const generationName = "generation.json"

var generationPattern = regexp.MustCompile(`^g(\d{1,9})/`)

// currentGeneration returns the newest generation of a topic; known is false for a new topic.
func currentGeneration(ctx context.Context, s objects, topic string) (generation int, known bool, err error) {
	folder := path.Join(segmentsFolder, topic)
	list, err := s.List(ctx, folder)
	if err != nil {
		return 0, false, err
	}
	for _, o := range list {
		m := generationPattern.FindStringSubmatch(strings.TrimPrefix(o.Key, folder+"/"))
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		generation, known = max(generation, n), true
	}
	return generation, known, nil
}

// claimGeneration makes a generation that no other run has.
func claimGeneration(ctx context.Context, s store, topic string, newest int, known bool) (int, error) {
	g := newest
	if known {
		g++
	}
	for ; ; g++ {
		err := claim(ctx, s, path.Join(segmentsFolder, topic, fmt.Sprintf("g%d", g), generationName))
		if err == nil {
			return g, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return 0, fmt.Errorf("making a generation: %w", err)
		}
	}
}

func claim(ctx context.Context, s drafts, key string) error {
	d, err := s.Draft(key)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write([]byte("{\"resumable\":false}\n")); err != nil {
		return err
	}
	return s.Publish(ctx, d, key)
}
