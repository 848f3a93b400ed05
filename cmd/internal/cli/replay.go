package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/analyze"
	"tailgate/internal/version"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/schemas"
	"tailgate/sim"
)

// replayFlags are the flags of `tailgate replay`.
type replayFlags struct {
	planFlags
	targets            []string
	api, model, salt   string
	out, gatePath      string
	faults             []string
	gate               *analyze.Gate
	turns, output      string
	maxInflight        int
	concurrency        int
	duration, drain    time.Duration
	timeout            time.Duration
	count              int64
	labels             labelsFlag
	dryRun, asJSON     bool
	waitReady          time.Duration
	settings           map[string]any // effective flags, for the manifest
	targetDescription  map[string]any
	virtual            bool
	startedAt, endedAt time.Time
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay TRACE --target URL|sim:…",
		Short: "Send a trace on its schedule and record every request",
		Long: `Sends each row of the trace at its scheduled time (open loop), whatever the target does, and records every
request in RUN_DIR. --target sim: runs the simulated engine in virtual time (sim:help lists its settings). The key for the target is read from
TAILGATE_API_KEY. The first ^C stops sending and waits for answers, the second aborts; both keep what was measured.

Exit codes: 0 done; 1 the target cannot be reached, or the disk failed; 2 wrong usage; 4 run invalid (our own side
was too slow, or settings contradict); 6 broken rows in the trace; 130 interrupted. With --gate also 3 gate failed and
5 inconclusive.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd, args[0], &f) },
	}
	f.addPlan(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.targets, "target", nil, "URL of an OpenAI-compatible server (repeatable), or sim:SPEC")
	addFaults(cmd, &f.faults)
	fl.StringVar(&f.api, "api", "completions", "completions (token-id prompts, exact lengths) or chat")
	fl.StringVar(&f.model, "model", "", "model name to ask for (default: the first that the target lists)")
	fl.StringVar(&f.salt, "salt", "", "salt of the prompts (default: new for each run, so that no run warms the next)")
	fl.StringVarP(&f.out, "out", "o", "", "folder for the results (default: runs/<run id>)")
	fl.StringVar(&f.turns, "turns", replay.TurnsTimestamp, "timestamp: every turn at its stamp; think: after the turn before has ended")
	fl.StringVar(&f.output, "output-length", replay.OutputNatural, "natural: the trace's length is a cap; pinned: exactly the trace's length")
	fl.IntVar(&f.maxInflight, "max-inflight", 0, "cap on requests in flight; reaching it makes the run invalid (0 = none)")
	fl.IntVar(&f.concurrency, "concurrency", 0, "closed loop with this many slots; timestamps are ignored (0 = open loop)")
	fl.DurationVar(&f.duration, "duration", 0, "send nothing at or after this (0 = the whole plan)")
	fl.Int64Var(&f.count, "count", 0, "stop after this many sends (0 = no limit)")
	fl.DurationVar(&f.drain, "drain", 0, "how long to wait for answers after the last send (default 10m)")
	fl.DurationVar(&f.timeout, "timeout", 0, "end a request that takes longer than this (0 = never)")
	fl.Var(&f.labels, "label", "key=value to keep with the run (repeatable): model, engine, gpu, gpu_count, parallelism …")
	fl.DurationVar(&f.waitReady, "wait-ready", 0, "wait this long for the target to answer before the first send")
	fl.StringVar(&f.gatePath, "gate", "", "gate file: judge the run at its end, as analyze would")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and send nothing")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (f *replayFlags) options(a *app) replay.Options {
	return replay.Options{MaxInflight: f.maxInflight, Concurrency: f.concurrency, Duration: f.duration, Count: f.count,
		Turns: f.turns, Drain: f.drain, Output: f.output, Seed: f.tf.seed, Abort: a.abort, Logger: a.logger()}
}

// validate reports every fault of the flags at once.
func (f *replayFlags) validate(cmd *cobra.Command, a *app, o replay.Options) error {
	var gateFault error
	f.gate, gateFault = a.loadGate(f.gatePath)
	errs := []error{f.validatePlan(cmd), o.Validate(), gateFault}
	simulated := 0
	for _, t := range f.targets {
		if strings.HasPrefix(t, "sim:") {
			_, err := engine(t, f.faults)
			errs = append(errs, err)
			simulated++
		}
	}
	f.virtual = simulated > 0
	switch {
	case len(f.targets) == 0 && !f.dryRun:
		errs = append(errs, errors.New("--target is missing"))
	case simulated == 0 && len(f.faults) > 0:
		errs = append(errs, errors.New("--fault needs a simulated target (--target sim:…)"))
	case simulated > 0 && len(f.targets) > 1:
		errs = append(errs, errors.New("sim: is a whole cluster and stands alone (sim:…,replicas=N)"))
	}
	return allFaults(errs...)
}

func (a *app) replay(cmd *cobra.Command, path string, f *replayFlags) error {
	if slices.Contains(f.targets, simHelp) {
		return sim.WriteHelp(a.stdout)
	}
	ctx := cmd.Context()
	o := f.options(a)
	if err := f.validate(cmd, a, o); err != nil {
		return err
	}
	p, err := f.make(ctx, a, path)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.printPlan(p.summary(f.output), f.asJSON)
	}
	f.settings = settings(cmd)
	p.plan.RunID = f.runID(p)
	if f.out == "" {
		f.out = filepath.Join("runs", p.plan.RunID)
	}
	if _, err := schemas.ReadManifest(f.out); err == nil {
		return usage(fmt.Errorf("%s holds a finished run", f.out), "give another folder with --out")
	}
	send, err := f.target(ctx, a, p)
	if err != nil {
		return err
	}
	return a.record(ctx, f, p, o, send)
}

// record runs the plan, writes the manifest and reports.
func (a *app) record(ctx context.Context, f *replayFlags, p *planned, o replay.Options, send sender) error {
	footer := traceFooter(p.source, f.tf.seed)
	footer.Schema = schemas.TableResults
	rec, err := replay.NewRecorder(f.out, p.plan.RunID, footer)
	if err != nil {
		return err
	}
	line := a.progress()
	o.TTFTLimit = f.gate.TTFTLimit()
	o.OnProgress = func(s replay.Progress) { line.show(replayProgress(s)) }
	f.startedAt = now()
	summary, err := send(ctx, o, rec)
	line.end()
	f.endedAt = now()
	if err != nil {
		return err
	}
	files, err := rec.Finish()
	if err != nil {
		return err
	}
	if err := f.manifest(p, summary, files).Write(f.out); err != nil {
		return err
	}
	if err := a.reportRun(f); err != nil {
		return err
	}
	if ctx.Err() != nil {
		a.code = exitInterrupted
	}
	return nil
}

// reportRun prints the run's tails, and says whether the run itself was valid.
func (a *app) reportRun(f *replayFlags) error {
	data, err := analyze.Load(context.Background(), []string{f.out})
	if err != nil {
		return err
	}
	report, err := analyze.Analyze(context.Background(), data, analyze.Options{Gate: f.gate})
	if err != nil {
		return err
	}
	a.code = verdictCode(report.Verdict())
	if report.Valid != nil && !*report.Valid {
		a.code = exitInvalid
	}
	if f.asJSON {
		return report.WriteJSON(a.stdout)
	}
	if err := report.WriteText(a.stdout); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "results: %s\n", f.out)
	if f.gate == nil {
		a.note("next: tailgate analyze %s --gate gate.yaml", f.out)
	}
	return nil
}

// sender runs a plan against one kind of target.
type sender func(context.Context, replay.Options, *replay.Recorder) (*replay.Summary, error)

// target connects to the target and says how to send to it.
func (f *replayFlags) target(ctx context.Context, a *app, p *planned) (sender, error) {
	if f.virtual {
		return f.simulated(p)
	}
	client, err := f.client(a, p)
	if err != nil {
		return nil, err
	}
	if f.targetDescription, err = probe(ctx, client, f.waitReady); err != nil {
		return nil, err
	}
	if first, ok := f.targetDescription["model"].(string); ok && f.model == "" {
		f.model = first
		if client, err = f.client(a, p); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, o replay.Options, rec *replay.Recorder) (*replay.Summary, error) {
		defer client.Close()
		return replay.RunReal(ctx, p.plan, o, client, rec)
	}, nil
}

func (f *replayFlags) simulated(p *planned) (sender, error) {
	config, err := engine(f.targets[0], f.faults)
	if err != nil {
		return nil, err
	}
	config.BlockSize = p.plan.BlockSize
	cluster, err := sim.NewCluster(config)
	if err != nil {
		return nil, err
	}
	f.targetDescription = map[string]any{"simulated": f.targets[0], "spec": config.String(), "preset": config.Preset, "replicas": config.Replicas}
	return func(ctx context.Context, o replay.Options, rec *replay.Recorder) (*replay.Summary, error) {
		return replay.RunVirtual(ctx, p.plan, o, cluster, rec)
	}, nil
}

func (f *replayFlags) client(a *app, p *planned) (*openai.Client, error) {
	salt := f.salt
	if salt == "" {
		salt = p.plan.RunID
	}
	key, _ := a.getenv("TAILGATE_API_KEY")
	return openai.New(openai.Options{Targets: f.targets, API: f.api, Model: f.model, APIKey: key, Output: f.output,
		RunID: p.plan.RunID, Prompts: &replay.Prompts{BlockSize: p.plan.BlockSize, Seed: f.tf.seed, Salt: salt}, Timeout: f.timeout, Logger: a.logger()})
}

// probe asks the target what it is, again and again for as long as --wait-ready allows.
func probe(ctx context.Context, client *openai.Client, wait time.Duration) (map[string]any, error) {
	for deadline := time.Now().Add(wait); ; {
		told, err := client.Probe(ctx)
		if err == nil || !time.Now().Before(deadline) {
			return told, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

func (f *replayFlags) manifest(p *planned, s *replay.Summary, files []schemas.FileDigest) *schemas.Manifest {
	m := &schemas.Manifest{Kind: "run", Tool: version.String(), RunID: p.plan.RunID, Seed: f.tf.seed, Clock: "real",
		StartedAt: f.startedAt, EndedAt: f.endedAt, Settings: f.settings, Labels: f.labels, Target: f.targetDescription,
		Inputs: []schemas.FileDigest{traceDigest(p.source)}, Files: files, Run: &s.RunFacts, Invariants: p.invariants, Notes: p.notes}
	if f.virtual {
		// A virtual run happens at no time of day: its clock starts at zero, and a repeat gives the same bytes.
		m.Clock = "virtual"
		m.StartedAt = time.Unix(0, 0).UTC()
		m.EndedAt = m.StartedAt.Add(s.Elapsed)
	}
	return m
}

// runID names a run: by its content in virtual time, by its start in real time.
func (f *replayFlags) runID(p *planned) string {
	content, _ := json.Marshal(map[string]any{"settings": f.settings, "trace": p.source.Meta.SHA256, "targets": f.targets})
	sum := sha256.Sum256(content)
	id := hex.EncodeToString(sum[:6])
	if f.virtual {
		return "sim-" + id
	}
	return now().Format("20060102T150405Z") + "-" + id
}

// settings are the effective flags of a command, as they go into a manifest. Where to print and where to write
// are not settings of the run.
func settings(cmd *cobra.Command) map[string]any {
	out := map[string]any{}
	cmd.Flags().VisitAll(func(fl *pflag.Flag) {
		switch fl.Name {
		case "help", "quiet", "json", "out", "dry-run", "label":
		default:
			out[fl.Name] = fl.Value.String()
		}
	})
	return out
}

func (a *app) printPlan(s planSummary, asJSON bool) error {
	if asJSON {
		return a.printJSON(s)
	}
	s.writeText(a)
	return nil
}

// makeDir makes a folder for outputs.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	return nil
}
