package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"tailgate/internal/atomicfile"
)

func (a *app) demoCommand() *cobra.Command {
	var out string
	var short bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole way once: from gateway logs to a verdict",
		Long: `Writes sample gateway logs to an in-process Kafka broker, ingests and anonymizes them, publishes the lake, profiles,
rescales to 1.5x, replays 30 s against tailgate sim over HTTP, then two virtual hours at rates from 1x to past the knee,
judges each, and draws the curve over the rates. Every step is a command that you can type yourself; all files stay in one folder.

Exit codes: 0 done, whatever the verdicts; 1, 2, 6 or 7 when a step failed so.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &demo{app: a, ctx: cmd.Context(), out: out, short: short, verdicts: map[string]string{}}
			return d.run()
		},
	}
	cmd.Flags().StringVar(&out, "out", "demo-out", "folder for everything; an earlier demo in it is replaced")
	cmd.Flags().BoolVar(&short, "short", false, "10 minutes of logs and 5 s of HTTP, to see the steps quickly")
	return cmd
}

// demo runs the commands of the whole way in order.
type demo struct {
	app      *app
	ctx      context.Context
	out      string
	short    bool
	verdicts map[string]string // run → verdict of the gate
}

const (
	demoMarker = ".tailgate-demo"
	demoDay    = "2026-11-28"
	demoEngine = "sim:llama-3.1-70b@4xh100-tp4"
	// demoKnee is the scale at which that engine is well past what it can hold of this traffic.
	demoKnee = "16x"
)

const demoGate = `# The gate of the demo: tails that a chat product could ask for.
capacity_gate:
  success_rate: ">= 0.98"
  ttft_p95: "<= 800ms"
  ttft_p99: "<= ${TTFT_P99_SLO}"
  tpot_p99: "<= 60ms"
  e2e_p99: "<= 60s"
  queue_growth: "no_sustained_growth"
buckets:
  - {by: {input_length: [0, 1024]}, ttft_p95: "<= 500ms"}
`

func (d *demo) run() error {
	if err := d.prepare(); err != nil {
		return err
	}
	for _, stage := range []func() error{d.fromLogsToLake, d.fromLakeToTrace, d.overHTTP, d.inVirtualTime} {
		if err := stage(); err != nil {
			return err
		}
	}
	return d.finish()
}

// prepare empties the folder of an earlier demo, and of nothing else.
func (d *demo) prepare() error {
	entries, err := os.ReadDir(d.out)
	if err == nil && len(entries) > 0 {
		if _, err := os.Stat(d.path(demoMarker)); err != nil {
			return usage(fmt.Errorf("%s is not empty and not an earlier demo", d.out), "give another folder with --out")
		}
		if err := os.RemoveAll(d.out); err != nil {
			return fmt.Errorf("removing the earlier demo: %w", err)
		}
	}
	if err := makeDir(d.out); err != nil {
		return err
	}
	return errors.Join(
		atomicfile.WriteFile(d.path(demoMarker), nil),
		atomicfile.WriteFile(d.path("gate.yaml"), []byte(demoGate)))
}

func (d *demo) path(name string) string { return filepath.Join(d.out, name) }

func (d *demo) duration(long, short string) string {
	if d.short {
		return short
	}
	return long
}

// fromLogsToLake goes from gateway logs on a broker to a published day.
func (d *demo) fromLogsToLake() error {
	d.title("Gateway logs on a Kafka broker")
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return fmt.Errorf("starting the in-process broker: %w", err)
	}
	defer cluster.Close()
	broker := "kafka://" + cluster.ListenAddrs()[0]
	lake, keys := d.path("lake"), d.path("keys")
	if err := d.steps(
		[]string{"sample", "--to", broker, "--duration", d.duration("2h", "10m"), "--rate", "1/s", "--start", demoDay + "T18:00:00Z"},
	); err != nil {
		return err
	}
	d.title("Ingest, anonymize, publish")
	// The sample's gateway counts four bytes as a token.
	return d.steps(
		[]string{"keys", "init", "--keys", keys},
		[]string{"ingest", broker + "/sample-litellm", "--format", "litellm", "--tokenizer", "chars4", "--out", lake, "--keys", keys},
		[]string{"ingest", broker + "/sample-otlp", "--format", "otlp-json", "--tokenizer", "chars4", "--out", lake, "--keys", keys},
		[]string{"publish", lake, "--day", demoDay},
	)
}

// fromLakeToTrace profiles the day and makes traces of it.
func (d *demo) fromLakeToTrace() error {
	d.title("Profile, trace, rescale")
	return d.steps(
		[]string{"profile", d.path("lake"), "--day", demoDay, "-o", d.path("profile")},
		[]string{"trace", "export", d.path("lake"), "--day", demoDay, "-o", d.path("trace.jsonl.gz")},
		[]string{"rescale", d.path("trace.jsonl.gz"), "--scale", "1.5x", "-o", d.path("trace-1.5x.jsonl.gz")},
	)
}

// overHTTP replays a piece of the day against a simulated engine in a process of its own.
func (d *demo) overHTTP() error {
	d.title("Replay over HTTP at 1.5x")
	url, stop, err := d.startSim()
	if err != nil {
		return err
	}
	defer stop()
	window := d.duration("30m..30m30s", "5m..5m5s")
	if err := d.steps([]string{"replay", d.path("trace-1.5x.jsonl.gz"), "--window", window, "--target", url, "--out", d.path("run-http")}); err != nil {
		return err
	}
	return d.judge("run-http")
}

// demoRuns are those in virtual time.
var demoRuns = []struct{ name, scale string }{{"run-sim-1x", "1x"}, {"run-sim-4x", "4x"}, {"run-sim-8x", "8x"}, {"run-sim-past-knee", demoKnee}}

// inVirtualTime replays the whole trace on the simulated engine, from 1x to past the knee.
func (d *demo) inVirtualTime() error {
	d.title("Two virtual hours: 1x to past the knee")
	var folders []string
	for _, run := range demoRuns {
		folders = append(folders, d.path(run.name))
		if err := d.steps([]string{"replay", d.path("trace.jsonl.gz"), "--scale", run.scale, "--target", demoEngine, "--out", d.path(run.name)}); err != nil {
			return err
		}
		if err := d.judge(run.name); err != nil {
			return err
		}
	}
	d.title("The curve over the rates")
	return d.steps(slices.Concat([]string{"analyze"}, folders, []string{"--gate", d.path("gate.yaml"), "--html", d.path("rates.html")}))
}

// judge analyses a run against the gate and remembers the verdict.
func (d *demo) judge(run string) error {
	args := []string{"analyze", d.path(run), "--gate", d.path("gate.yaml"), "--by", "input_length=0,1024,8192", "--by", "class",
		"--html", d.path(run + ".html"), "--parquet", d.path(run + "-tables")}
	d.show(args)
	code := d.child(args)
	verdict, ok := map[int]string{exitOK: "PASS", exitGateFailed: "FAIL", exitInvalid: "INVALID", exitInconclusive: "INCONCLUSIVE"}[code]
	if !ok {
		return d.failed(args, code)
	}
	d.verdicts[run] = verdict
	return nil
}

func (d *demo) finish() error {
	d.title("Verdicts")
	fmt.Fprintf(d.app.stdout, "  %-18s %s\n", "run-http", d.verdicts["run-http"])
	for _, run := range demoRuns {
		fmt.Fprintf(d.app.stdout, "  %-18s %s\n", run.name, d.verdicts[run.name])
	}
	data, err := json.MarshalIndent(d.verdicts, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(d.path("verdicts.json"), append(data, '\n')); err != nil {
		return err
	}
	fmt.Fprintf(d.app.stdout, "\nreport: %s\ncurve:  %s\nfolder: %s\n", d.path("run-sim-past-knee.html"), d.path("rates.html"), d.out)
	return nil
}

// steps runs commands in turn and stops at the first that failed.
func (d *demo) steps(commands ...[]string) error {
	for _, args := range commands {
		d.show(args)
		switch code := d.child(args); code {
		case exitOK, exitGateFailed, exitInvalid, exitInconclusive:
		default:
			return d.failed(args, code)
		}
	}
	return nil
}

// child runs one command line in this process, as Main would, and returns its exit code.
func (d *demo) child(args []string) int {
	a := *d.app
	a.code = 0
	getenv := d.app.getenv
	a.getenv = func(name string) (string, bool) {
		if v, ok := getenv(name); ok || name != "TTFT_P99_SLO" {
			return v, ok
		}
		return "1500ms", true
	}
	return a.run(d.ctx, args)
}

func (d *demo) title(text string) { fmt.Fprintf(d.app.stdout, "\n== %s\n", text) }

func (d *demo) show(args []string) {
	fmt.Fprintf(d.app.stdout, "\n$ tailgate %s\n", strings.Join(args, " "))
}

// failed is the error of a step that ended with code; the step has said why.
func (d *demo) failed(args []string, code int) error {
	return &stepError{step: args[0], code: code}
}

// stepError carries the exit code of a demo's step.
type stepError struct {
	step string
	code int
	text string // of the step's own error, where it was not printed
}

func (e *stepError) Error() string {
	if e.text != "" {
		return e.text
	}
	return fmt.Sprintf("step %s ended with exit %d", e.step, e.code)
}

// startSim starts `tailgate sim` as a process of its own and returns its address.
func (d *demo) startSim() (url string, stop func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.Command(exe, "sim", demoEngine, "--listen", "127.0.0.1:0")
	cmd.Args[0] = "tailgate"
	cmd.Stderr = d.app.stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	d.show(cmd.Args[1:])
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting tailgate sim: %w", err)
	}
	stop = func() {
		// A process that has ended already cannot be signalled, and one that was killed reports that: both are fine.
		_ = cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		stop()
		return "", nil, fmt.Errorf("starting tailgate sim: it said %q (%w)", line, errors.Join(err, io.ErrUnexpectedEOF))
	}
	fmt.Fprintln(d.app.stdout, strings.TrimSpace(line))
	return url, stop, nil
}
