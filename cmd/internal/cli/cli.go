// Package cli is the wiring of tailgate's commands: flags, validation, one call into the stages, output and
// progress. It holds no logic of its own; what a command does is done in the stage packages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/internal/version"
)

// app is what a command may touch of the outside world.
type app struct {
	stdin  io.Reader
	stdout io.Writer // the result, nothing else
	stderr io.Writer // progress, warnings, errors
	getenv func(string) (string, bool)
	abort  <-chan struct{} // closed at the second ^C
	quiet  bool
	log    *slog.Logger // with --log-format json; nil = lines for people
	code   int          // exit code of a command that ran to its end
}

// Main runs one command line and returns its exit code.
func Main(args []string) int {
	ctx, abort, stop := interrupts()
	defer stop()
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.LookupEnv, abort: abort}
	if wantsJSON(args, a.getenv) {
		a.logAsJSON()
	}
	return a.run(ctx, args)
}

// interrupts turns the first ^C (or SIGTERM) into a cancelled context and the second into a closed channel. The third is
// the system's: it ends a process that does neither.
func interrupts() (ctx context.Context, abort <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	second := make(chan struct{})
	sig := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	go func() {
		for _, f := range []func(){cancel, func() { signal.Stop(sig); close(second) }} {
			select {
			case <-sig:
				f()
			case <-done:
				return
			}
		}
	}()
	return ctx, second, func() { signal.Stop(sig); close(done); cancel() }
}

// run executes args and prints the error, if any, as one line with a hint.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return a.code
	}
	code := exitCode(err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		code = exitInterrupted
	}
	a.printError(cmd, err)
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tailgate",
		Short: "What request rate can this cluster hold, on our own traffic, with our tail SLOs kept?",
		Long: `tailgate turns production gateway logs into anonymous timed traces, replays them at any scale against an
LLM cluster (or a simulated one), and gives a verdict on the tail SLOs with its uncertainty.

Exit codes: 0 done, gate passed; 1 failed while running; 2 wrong usage; 3 gate failed, drift or checklist not met;
4 run invalid; 5 inconclusive; 6 data gap, corruption or broken rows; 7 key missing or unsafe, or privacy audit failed;
8 and 9 of refresh alone: no new data, late data waits; 130 interrupted, with what was measured saved.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.fromEnvironment(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	format := logFormatFlag(logText)
	root.PersistentFlags().Var(&format, "log-format", "what stderr has: text, or json (one object a line)")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress on stderr")
	root.AddCommand(
		a.sampleCommand(), a.keysCommand(), a.inspectCommand(), a.ingestCommand(), a.reprocessCommand(), a.publishCommand(), a.forgetCommand(), a.auditCommand(),
		a.profileCommand(), a.traceCommand(), a.rescaleCommand(), a.synthCommand(), a.simCommand(),
		a.replayCommand(), a.analyzeCommand(), a.compareCommand(), a.backtestCommand(), a.gateCommand(), a.sweepCommand(), a.capacityCommand(),
		a.envelopeCommand(), a.checklistCommand(), a.refreshCommand(), a.catCommand(), a.demoCommand(), a.versionCommand(),
	)
	wrapArgs(root)
	return root
}

// wrapArgs marks the complaints of cobra's own argument checks as wrong usage.
func wrapArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error { return usage(check(c, args), helpHint(c)) }
	} else if cmd.HasSubCommands() {
		cmd.Args = unknownSubcommand
	}
	for _, c := range cmd.Commands() {
		wrapArgs(c)
	}
}

func unknownSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := helpHint(cmd)
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
	return usage(fmt.Errorf("unknown command %q", args[0]), hint)
}

// fromEnvironment sets every flag that was not given from TAILGATE_<FLAG>, where that is set.
func (a *app) fromEnvironment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		name := "TAILGATE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, _ := a.getenv(name); v != "" { // set to nothing counts as not set
			if err := cmd.Flags().Set(f.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	return usage(errors.Join(errs...), "")
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(a.stdout, "tailgate", version.String())
			return nil
		},
	}
}

// logger writes warnings of the stages to stderr as plain lines; as JSON, what they did too.
func (a *app) logger() *slog.Logger {
	if a.log != nil {
		return a.log
	}
	level := slog.LevelWarn
	if a.quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}

// note prints a line for people to stderr unless --quiet.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// now is the wall clock in UTC; stages get times as values.
func now() time.Time { return time.Now().UTC() }
