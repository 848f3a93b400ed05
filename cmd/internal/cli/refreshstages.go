package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tailgate/ingest"
	"tailgate/refresh"
)

type ingestProgress = ingest.Progress

// refreshSource opens the source of a refresh as `tailgate ingest` does.
type refreshSource struct {
	a       *app
	sources []string
	kafka   *kafkaFlags
}

func (s *refreshSource) open(ctx context.Context) (ingest.Source, error) {
	return s.a.openSource(ctx, s.sources, s.kafka, false)
}

// pathSettings are the settings whose values are paths, relative to the file.
var pathSettings = []string{"classes", "exclude", "models", "kafka-ca", "kafka-cert", "kafka-key", "sasl-password-file"}

// refreshStages makes the stages' options of the file's settings, by the flags that the commands have. Every fault is
// told with its line.
func (a *app) refreshStages(c *refresh.Config, dir string, o *refresh.Options) (*refreshSource, error) {
	in := ingestFlags{lake: "root", maxBad: "1%"}
	in.anon.keys = c.Keys
	fl := pflag.NewFlagSet("ingest", pflag.ContinueOnError)
	in.register(fl)
	err := setFlags(fl, c.Name, "ingest", c.Ingest, dir)
	var out publishFlags
	publish := pflag.NewFlagSet("publish", pflag.ContinueOnError)
	out.register(publish)
	err = errors.Join(err, setFlags(publish, c.Name, "publish", c.Publish, dir), out.apply(publish))
	if err != nil {
		return nil, err
	}
	io, err := in.options()
	hash, hashErr := in.anon.options()
	if err := errors.Join(err, hashErr); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := errors.Join(in.run.apply(io), io.CheckLimits()); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if io.Format == ingest.FormatAuto {
		return nil, fmt.Errorf("%s: ingest.format: a job names its format; `tailgate inspect` finds it", c.Name)
	}
	o.Ingest, o.Publish, o.Hash = *io, out.PublishOptions, hash
	c.Envelope, c.Metrics.Textfile = besideFile(dir, c.Envelope), besideFile(dir, c.Metrics.Textfile)
	for i, folder := range c.Retention.Results {
		c.Retention.Results[i] = besideFile(dir, folder)
	}
	s := &refreshSource{a: a, kafka: &in.kafka}
	for _, path := range c.Source {
		s.sources = append(s.sources, besideFile(dir, path))
	}
	return s, nil
}

// settingValue is the value of a setting, with its path relative to the file.
func settingValue(s refresh.Setting, dir string) string {
	if slices.Contains(pathSettings, s.Name) || s.Name == "tokenizer" && strings.ContainsAny(s.Value, "/.") {
		return besideFile(dir, s.Value)
	}
	for _, prefix := range []string{"mapped:", "jinja:"} {
		if rest, ok := strings.CutPrefix(s.Value, prefix); ok {
			return prefix + besideFile(dir, rest)
		}
	}
	return s.Value
}

// setFlags sets flags from a section of the file.
func setFlags(fl *pflag.FlagSet, file, section string, settings []refresh.Setting, dir string) error {
	var errs []error
	for _, s := range settings {
		if err := fl.Set(s.Name, settingValue(s, dir)); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s.%s: %w", file, s.Line, section, s.Name, err))
		}
	}
	return errors.Join(errs...)
}
