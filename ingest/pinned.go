package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// fetchTries is how often a segment is fetched again when the connection breaks.
const fetchTries = 4

// pinned opens an object for reading at any place and pins its bytes. An object that is far is fetched once, into
// a file without a name in dir: what is read is what was pinned, and Parquet's many small reads are no requests.
func pinned(ctx context.Context, s streams, key, dir string) (*objstore.Reader, schemas.FileDigest, error) {
	if !s.Far() {
		digest, err := digestOf(ctx, s, key)
		if err != nil {
			return nil, digest, err
		}
		r, err := s.Open(ctx, key)
		return r, digest, err
	}
	for try, wait := 1, 100*time.Millisecond; ; try, wait = try+1, 2*wait {
		r, digest, err := fetchWhole(ctx, s, key, dir)
		if err == nil || try == fetchTries {
			return r, digest, err
		}
		select {
		case <-ctx.Done():
			return nil, digest, fmt.Errorf("reading %s: %w", locate(s, key), context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

func fetchWhole(ctx context.Context, s streams, key, dir string) (*objstore.Reader, schemas.FileDigest, error) {
	digest := schemas.FileDigest{Name: key}
	body, err := s.Stream(ctx, key)
	if err != nil {
		return nil, digest, err
	}
	defer body.Close()
	f, err := atomicfile.CreateUnnamed(dir)
	if err != nil {
		return nil, digest, err
	}
	h := sha256.New()
	digest.Bytes, err = io.Copy(io.MultiWriter(f, h), body)
	if err != nil {
		f.Discard()
		return nil, digest, fmt.Errorf("reading %s: %w", locate(s, key), err)
	}
	digest.SHA256 = hex.EncodeToString(h.Sum(nil))
	return objstore.NewReader(f, digest.Bytes, func() error { f.Discard(); return nil }), digest, nil
}
