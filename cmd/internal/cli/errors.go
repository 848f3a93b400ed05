package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/internal/fault"
)

// Exit codes of design §13; tests and scripts rely on them.
const (
	exitOK           = 0
	exitFailure      = 1
	exitUsage        = 2
	exitGateFailed   = 3
	exitInvalid      = 4
	exitInconclusive = 5
	exitData         = 6
	exitKey          = 7
	exitInterrupted  = 130
)

func exitCode(err error) int {
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	var step *stepError
	if errors.As(err, &step) {
		return step.code
	}
	switch fault.Of(err) {
	case fault.Usage:
		return exitUsage
	case fault.Data:
		return exitData
	case fault.Key:
		return exitKey
	default:
		return exitFailure
	}
}

// usage marks err as wrong usage (exit 2).
func usage(err error, hint string) error { return fault.Mark(err, fault.Usage, hint) }

func helpHint(cmd *cobra.Command) string { return fmt.Sprintf("see `%s --help`", cmd.CommandPath()) }

// maxFaults are printed of one file: a person mends no more at a time.
const (
	maxFaults     = 40
	maxFaultBytes = 800
)

// printError prints one line per fault, each behind the command's name, and the hint.
func (a *app) printError(cmd *cobra.Command, err error) {
	path := "tailgate"
	if cmd != nil {
		path = cmd.CommandPath()
	}
	if a.log != nil {
		a.log.Error(err.Error(), "command", path, "exit", exitCode(err), "hint", fault.Hint(err))
		return
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if more := len(lines) - maxFaults; more > 0 {
		lines = append(lines[:maxFaults], fmt.Sprintf("and %d faults more", more))
	}
	for _, line := range lines {
		if len(line) > maxFaultBytes { // an error of a library that quotes what it was given
			line = strings.ToValidUTF8(line[:maxFaultBytes], "") + "…"
		}
		fmt.Fprintf(a.stderr, "%s: %s\n", path, strings.TrimSpace(line))
	}
	if hint := fault.Hint(err); hint != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", hint)
	}
}

// flagError names the nearest flag when an unknown one was given.
func flagError(cmd *cobra.Command, err error) error {
	hint := helpHint(cmd)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := nearestFlag(cmd, unknown.GetSpecifiedName()); near != "" {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return usage(err, hint)
}

func nearestFlag(cmd *cobra.Command, name string) string {
	best, bestDistance := "", 1+len(name)/3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); d <= bestDistance {
			best, bestDistance = f.Name, d-1
		}
	})
	return best
}

// distance is the Levenshtein distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
