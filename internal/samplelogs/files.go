package samplelogs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tailgate/internal/atomicfile"
)

// WriteFiles writes the records of each topic as lines of litellm.jsonl and otlp.jsonl into dir, which is made
// where it is missing, and returns the paths. Files appear whole or not at all, and replace earlier ones.
func WriteFiles(dir string, o Options) ([]string, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the sample logs: %w", err)
	}
	type output struct {
		file  *atomicfile.File
		lines *bufio.Writer
	}
	topics := []string{TopicLiteLLM, TopicOTLP}
	outputs := map[string]output{}
	for _, topic := range topics {
		f, err := atomicfile.Create(filepath.Join(dir, topic+".jsonl"))
		if err != nil {
			return nil, err
		}
		defer f.Abort()
		outputs[topic] = output{f, bufio.NewWriterSize(f, 1<<20)}
	}
	err := Generate(o, func(r Record) error {
		w := outputs[r.Topic].lines
		_, err := w.Write(r.Value)
		return errors.Join(err, w.WriteByte('\n'))
	})
	if err != nil {
		return nil, fmt.Errorf("writing sample logs: %w", err)
	}
	var paths []string
	for _, topic := range topics {
		out := outputs[topic]
		if err := errors.Join(out.lines.Flush(), out.file.Commit()); err != nil {
			return paths, fmt.Errorf("writing sample logs: %w", err)
		}
		paths = append(paths, filepath.Join(dir, topic+".jsonl"))
	}
	return paths, nil
}
