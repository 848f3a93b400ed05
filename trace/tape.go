package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"tailgate/internal/atomicfile"
	"tailgate/schemas"
)

// tapeMemory is how much of a tape is in memory before it goes to a file.
const tapeMemory = 8 << 20

// tape keeps rows in the order in which they came, in frames: in memory while there are few, else in a file
// without a name in the folder for temporaries, of which nothing is left after close or a crash. It may be read
// any number of times, also at the same time, once sealed.
type tape struct {
	mem  []byte
	file *atomicfile.Unnamed
	out  *bufio.Writer
	head []byte
}

// frame is the header of a frame.
type frame struct {
	rows, line0 int64
}

// add appends a frame.
func (t *tape) add(f frame, blob []byte) error {
	t.head = binary.AppendUvarint(t.head[:0], uint64(f.rows))
	t.head = binary.AppendUvarint(t.head, uint64(f.line0))
	t.head = binary.AppendUvarint(t.head, uint64(len(blob)))
	if t.file == nil && len(t.mem)+len(t.head)+len(blob) > tapeMemory {
		file, err := atomicfile.CreateUnnamed(os.TempDir())
		if err != nil {
			return fmt.Errorf("making a temporary file: %w", err)
		}
		t.file, t.out = file, bufio.NewWriterSize(file, 256<<10)
		if err := t.write(t.mem); err != nil {
			return err
		}
		t.mem = nil
	}
	if t.file == nil {
		t.mem = append(append(t.mem, t.head...), blob...)
		return nil
	}
	return errors.Join(t.write(t.head), t.write(blob))
}

func (t *tape) write(b []byte) error {
	if _, err := t.out.Write(b); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	return nil
}

// frameRows is how many rows frameWriter puts in a frame.
const frameRows = 4096

// frameWriter puts single rows on a tape.
type frameWriter struct {
	tape *tape
	rows rowEncoder
	n    int64
	blob []byte
}

// add appends the decoder's row.
func (w *frameWriter) add(d *rowDecoder) error { return w.addRow(&d.row, d.line, d.told, d.bigRefs()) }

func (w *frameWriter) addRow(row *schemas.TraceRow, line int64, told bool, big []bigRef) error {
	if w.n == 0 {
		w.rows.start()
	}
	w.blob = w.rows.row(w.blob, row, line, told, big)
	if w.n++; w.n < frameRows {
		return nil
	}
	return w.flush()
}

// flush ends the frame.
func (w *frameWriter) flush() error {
	if w.n == 0 {
		return nil
	}
	err := w.tape.add(frame{rows: w.n}, w.blob)
	w.n, w.blob = 0, w.blob[:0]
	return err
}

// seal ends the adding.
func (t *tape) seal() error {
	if t.out == nil {
		return nil
	}
	err := t.out.Flush()
	t.out = nil
	if err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	return nil
}

// close gives the file up.
func (t *tape) close() {
	if t.file != nil {
		t.file.Discard()
		t.file = nil
	}
	t.mem = nil
}

// each visits the frames in order; blob is valid until the visit ends.
func (t *tape) each(visit func(f frame, blob []byte) error) error {
	if t.file == nil {
		for at := t.mem; len(at) > 0; {
			var f frame
			var n int64
			for _, v := range []*int64{&f.rows, &f.line0, &n} {
				u, k := binary.Uvarint(at)
				*v, at = int64(u), at[k:]
			}
			if err := visit(f, at[:n]); err != nil {
				return err
			}
			at = at[n:]
		}
		return nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(t.file, 0, math.MaxInt64), 256<<10)
	var blob []byte
	for {
		f, n, err := readFrame(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			if int64(cap(blob)) < n {
				blob = make([]byte, n, n+n/4)
			}
			blob = blob[:n]
			_, err = io.ReadFull(in, blob)
		}
		if err != nil {
			return fmt.Errorf("reading a temporary file: %w", err)
		}
		if err := visit(f, blob); err != nil {
			return err
		}
	}
}

// readFrame reads the header of a frame and the size of what follows; io.EOF after the last one.
func readFrame(in *bufio.Reader) (f frame, n int64, err error) {
	if _, err := in.Peek(1); err != nil {
		return f, 0, err
	}
	for _, v := range []*int64{&f.rows, &f.line0, &n} {
		u, err := binary.ReadUvarint(in)
		if err != nil {
			return f, 0, errTape
		}
		*v = int64(u)
	}
	if n < 0 || n > math.MaxInt32 || f.rows < 0 {
		return f, 0, errTape
	}
	return f, n, nil
}

var errTape = errors.New("a temporary file is broken")
