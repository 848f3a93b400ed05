package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// forgottenFolder holds the tombstones of a lake, one object each, named by its token.
const forgottenFolder = "_forgotten"

func tombstoneKey(token string) string { return path.Join(forgottenFolder, token+".json") }

// forgotten is who was forgotten, as a reader of records and a reader of rows know him. The zero value is nobody.
type forgotten struct {
	tokens map[string]bool // of schemas.KindForget
	rows   map[string]bool // tenants and sessions in rows
	kinds  []string        // that occur
}

// readForgotten reads the tombstones of a lake.
func readForgotten(ctx context.Context, s objects) (forgotten, error) {
	list, err := readTombstones(ctx, s)
	if err != nil || len(list) == 0 {
		return forgotten{}, err
	}
	f := forgotten{tokens: map[string]bool{}, rows: map[string]bool{}}
	for _, t := range list {
		f.tokens[t.Token] = true
		for _, p := range t.Pseudonyms {
			f.rows[p] = true
		}
		if !slices.Contains(f.kinds, t.Kind) {
			f.kinds = append(f.kinds, t.Kind)
		}
	}
	return f, nil
}

// readTombstones reads them in the order of their tokens. A broken one is fault.Data: it would let rows back in.
func readTombstones(ctx context.Context, s objects) ([]schemas.Tombstone, error) {
	list, err := s.List(ctx, forgottenFolder)
	if err != nil {
		return nil, err
	}
	var out []schemas.Tombstone
	for _, o := range list {
		if !strings.HasSuffix(o.Key, ".json") {
			continue
		}
		t, err := readTombstone(ctx, s, o.Key)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, *t)
	}
	return out, nil
}

func readTombstone(ctx context.Context, s objects, key string) (*schemas.Tombstone, error) {
	data, err := objstore.ReadAll(ctx, s, key)
	if err != nil {
		return nil, fmt.Errorf("reading a tombstone: %w", err)
	}
	var t schemas.Tombstone
	if json.Unmarshal(data, &t) != nil || t.Kind != schemas.ForgetTenant && t.Kind != schemas.ForgetSession ||
		t.Token == "" || path.Base(key) != t.Token+".json" {
		return nil, fault.Mark(fmt.Errorf("reading %s: not a tombstone", locate(s, key)), fault.Data,
			"restore it from a copy of the lake, or forget the same name again and remove the broken one")
	}
	return &t, nil
}

// hasRecord tells whether rec is of somebody who was forgotten.
func (f *forgotten) hasRecord(anon Anonymizer, rec *record) bool {
	for _, kind := range f.kinds {
		name := rec.tenant
		if kind == schemas.ForgetSession {
			name = rec.session
		}
		if len(name) > 0 && f.tokens[anon.Token(schemas.KindForget, schemas.ForgetValue(kind, name))] {
			return true
		}
	}
	return false
}

// hasRow tells whether a row is of somebody who was forgotten.
func (f *forgotten) hasRow(tenant, session *string) bool {
	return len(f.rows) > 0 && (tenant != nil && f.rows[*tenant] || session != nil && f.rows[*session])
}

// words are the tenants as slots of a build hold them.
func (f *forgotten) words(w *words) map[uint32]bool {
	out := map[uint32]bool{}
	for token := range f.rows {
		out[w.code([]byte(token))+1] = true
	}
	return out
}

// forget reads the tombstones again, and tells whether somebody was forgotten since the last time.
func (w *worker) forget(ctx context.Context) (more bool, err error) {
	f, err := readForgotten(ctx, w.store)
	if err != nil {
		return false, err
	}
	more = len(f.tokens) > len(w.forgotten.tokens)
	w.forgotten = f
	return more, nil
}
