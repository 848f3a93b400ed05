package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// OpenBucket opens the objects of a bucket as [Files]: each object is a topic with one partition, in the order of
// their keys, and the offset is the number of the record in the object.
func OpenBucket(ctx context.Context, bucket *objstore.S3) (*Files, error) {
	list, err := bucket.List(ctx, "")
	if err != nil {
		return nil, err
	}
	f := &Files{byName: map[string]*fileInput{}}
	for _, o := range list {
		in := &fileInput{path: bucket.String() + o.Key, bucket: bucket, key: o.Key, count: -1}
		f.byName[in.path] = in
		f.inputs = append(f.inputs, in)
	}
	if len(f.inputs) == 0 {
		return nil, fmt.Errorf("reading %s: no object there", bucket)
	}
	return f, nil
}

func openObject(ctx context.Context, bucket *objstore.S3, key string) (*fileReader, error) {
	body, err := bucket.Stream(ctx, key)
	if err != nil {
		return nil, err
	}
	far := &farReader{r: body}
	r, err := newFileReader(far, body)
	if err != nil {
		body.Close()
		err = fmt.Errorf("reading %s%s: %w", bucket, key, err)
		if far.err == nil {
			err = fault.Mark(err, fault.Data, "")
		}
		return nil, err
	}
	r.far = far
	return r, nil
}

// farReader keeps the error of a connection apart from what is wrong with the bytes: another try may mend it.
type farReader struct {
	r   io.Reader
	err error
}

func (f *farReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// lost is the error of the connection, nil where there was none.
func (r *fileReader) lost() error {
	if r.far == nil {
		return nil
	}
	return r.far.err
}
