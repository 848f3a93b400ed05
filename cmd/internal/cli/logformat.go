package cli

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// logFormatFlag is --log-format. What it asks for is done before flags are read, so that faults of flags have it too.
type logFormatFlag string

// Formats of what goes to stderr.
const (
	logText = "text"
	logJSON = "json"
)

func (f *logFormatFlag) String() string { return string(*f) }
func (*logFormatFlag) Type() string     { return "format" }
func (f *logFormatFlag) Set(s string) error {
	if s != logText && s != logJSON {
		return fmt.Errorf("%q is not %s or %s", s, logText, logJSON)
	}
	*f = logFormatFlag(s)
	return nil
}

// wantsJSON looks for --log-format json, or TAILGATE_LOG_FORMAT, in what the command line will say.
func wantsJSON(args []string, getenv func(string) (string, bool)) bool {
	const flag = "--log-format"
	for i, arg := range slices.Backward(args) { // the last one counts
		if v, ok := strings.CutPrefix(arg, flag+"="); ok {
			return v == logJSON
		}
		if arg == flag && i+1 < len(args) {
			return args[i+1] == logJSON
		}
	}
	v, _ := getenv("TAILGATE_LOG_FORMAT")
	return v == logJSON
}

// logAsJSON makes every line that goes to stderr a JSON object: progress, notes, warnings, errors.
func (a *app) logAsJSON() {
	a.log = slog.New(slog.NewJSONHandler(a.stderr, nil))
	a.stderr = &lineLog{a.log}
}

// lineLog makes a record of each line.
type lineLog struct{ log *slog.Logger }

var _ io.Writer = (*lineLog)(nil)

func (l *lineLog) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "warning: "); ok {
			l.log.Warn(text)
		} else if line != "" {
			l.log.Info(line)
		}
	}
	return len(p), nil
}
