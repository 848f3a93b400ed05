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
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tailgate/analyze"
	"tailgate/internal/version"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/replay/telemetry"
	"tailgate/schemas"
	"tailgate/sim"
)

// replayFlags are the flags of `tailgate replay`.
type replayFlags struct {
	planFlags
	clusterFlags
	shardFlags
	telemetryFlags
	requestFlags
	out, gatePath      string
	faults             []string
	gate               *analyze.Gate
	turns, output      string
	failedTurn         string
	maxInflight        int
	concurrency        concurrencyFlag
	duration, drain    time.Duration
	count              int64
	labels             labelsFlag
	dryRun, asJSON     bool
	failFast           bool
	metricsAddr        string
	metrics            metricsFlags
	waitReady          time.Duration
	settings           map[string]any // effective flags, for the manifest
	targetDescription  map[string]any
	contradicted       []string // labels that the target denies
	offset             *schemas.ClockOffset
	cluster            *sim.Cluster // in virtual time
	broken             string       // the rule of the gate that stopped the run
	virtual            bool
	startedAt, endedAt time.Time
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay TRACE --target URL|sim:…",
		Short: "Send a trace on its schedule and record every request",
		Long: `Sends each row of the trace at its scheduled time (open loop), whatever the target does, and records every
request in the folder of --out. --target sim: runs the simulated engine in virtual time (sim:help lists its settings).
The key for the target is read from TAILGATE_API_KEY, or from the file that TAILGATE_API_KEY_FILE names. The first ^C
stops sending and waits for answers, the second aborts; both keep what was measured. A third ends the process at once.

Exit codes: 0 done; 1 the target cannot be reached, or the disk failed; 2 wrong usage; 4 run invalid (the client
was too slow, or settings contradict); 6 broken rows in the trace; 130 interrupted. With --gate also 3 gate failed and
5 inconclusive.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd, args[0], &f) },
	}
	f.addPlan(cmd)
	f.clusterFlags.add(cmd)
	f.shardFlags.add(cmd)
	f.telemetryFlags.add(cmd)
	f.requestFlags.add(cmd)
	fl := cmd.Flags()
	addFaults(cmd, &f.faults)
	fl.StringVarP(&f.out, "out", "o", "", "folder for the results (default: runs/<run id>)")
	fl.StringVar(&f.turns, "turns", replay.TurnsTimestamp, "timestamp: every turn at its stamp; think: after the turn before has ended")
	fl.StringVar(&f.output, "output-length", replay.OutputNatural, "natural: the trace's length is a cap; pinned: exactly the trace's length; forced_tokens: the answer is dictated (--api generate)")
	fl.IntVar(&f.maxInflight, "max-inflight", 0, "cap on requests in flight; reaching it makes the run invalid (0 = none)")
	fl.Var(&f.concurrency, "concurrency", "closed loop with this many slots, or steps such as 4:2m,8:2m; timestamps are ignored")
	fl.StringVar(&f.failedTurn, "failed-turn", replay.FailedTurnSkip, "skip: the turns behind a failed one are sent all the same; end: the session ends")
	fl.DurationVar(&f.duration, "duration", 0, "send nothing at or after this (0 = the whole plan)")
	fl.Int64Var(&f.count, "count", 0, "stop after this many sends (0 = no limit)")
	fl.DurationVar(&f.drain, "drain", 0, "how long to wait for answers after the last send (default 10m)")
	fl.Var(&f.labels, "label", "key=value to keep with the run (repeatable): model, engine, gpu, gpu_count, parallelism …")
	fl.DurationVar(&f.waitReady, "wait-ready", 0, "wait this long for the target to answer before the first send")
	fl.StringVar(&f.gatePath, "gate", "", "gate file: judge the run at its end, as analyze would")
	fl.BoolVar(&f.failFast, "fail-fast", false, "with --gate: stop sending once a rule is broken whatever the rest of the run does")
	fl.StringVar(&f.metricsAddr, "metrics-addr", "", "address such as 127.0.0.1:9090 on which a running replay shows its state to Prometheus")
	f.metrics.register(fl)
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and send nothing")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (f *replayFlags) options(a *app) replay.Options {
	return replay.Options{MaxInflight: f.maxInflight, Steps: f.concurrency, Duration: f.duration, Count: f.count,
		Turns: f.turns, History: f.history, FailedTurn: f.failedTurn, StartAt: f.startTime, AbortIf: f.AbortIf, Drain: f.drain,
		Output: f.output, Seed: f.tf.seed, Abort: a.abort, Logger: a.logger()}
}

// validate reports every fault of the flags at once.
func (f *replayFlags) validate(cmd *cobra.Command, a *app) error {
	var gateFault error
	f.gate, gateFault = a.loadGate(f.gatePath)
	o := f.options(a)
	errs := []error{f.validatePlan(cmd, f.duration), o.Validate(), gateFault, f.readCluster(a), f.readRequests()}
	simulated := 0
	for _, t := range f.URLs {
		if strings.HasPrefix(t, "sim:") {
			_, err := engine(t, f.faults)
			errs = append(errs, err)
			simulated++
		}
	}
	f.virtual = simulated > 0
	if !f.virtual && len(f.URLs) > 0 {
		if f.strategy == "" {
			f.strategy = f.Strategy
		}
		errs = append(errs, f.check(a, f.URLs, f.output))
	}
	for k, v := range f.Labels { // a flag wins over the file
		if _, given := f.labels[k]; !given {
			errs = append(errs, f.labels.Set(k+"="+v))
		}
	}
	errs = append(errs, f.shardFlags.validate(f.virtual), f.metrics.check("tailgate_replay", "shard", f.shard))
	switch {
	case f.failFast && f.gatePath == "":
		errs = append(errs, errors.New("--fail-fast needs --gate"))
	case len(f.URLs) == 0 && f.file == "" && !f.dryRun:
		errs = append(errs, errors.New("--target is missing"))
	case simulated == 0 && len(f.faults) > 0:
		errs = append(errs, errors.New("--fault needs a simulated target (--target sim:…)"))
	case simulated > 0 && len(f.URLs) > 1:
		errs = append(errs, errors.New("sim: is a whole cluster and stands alone (sim:…,replicas=N)"))
	}
	return allFaults(errs...)
}

func (a *app) replay(cmd *cobra.Command, path string, f *replayFlags) error {
	if slices.Contains(f.urls, simHelp) {
		return sim.WriteHelp(a.stdout)
	}
	ctx := cmd.Context()
	if err := f.validate(cmd, a); err != nil {
		return err
	}
	until, count := f.duration, f.count
	if len(f.concurrency) > 0 || f.turns == replay.TurnsThink { // the stamps of the plan are not those of the sends
		until, count = 0, 0
	}
	p, err := f.make(ctx, a, path, until, count)
	if err != nil {
		return err
	}
	if err := f.checkRate(p.stamps(), len(f.concurrency) > 0); err != nil {
		return err
	}
	p.plan = p.plan.Shard(f.part)
	o := f.options(a)
	if f.dryRun {
		return f.dry(ctx, a, p)
	}
	f.settings = settings(cmd)
	if p.plan.RunID, err = f.join(ctx, a, f.runID(p), p.meta.SHA256, f.settings); err != nil {
		return err
	}
	defer f.leave()
	if f.out == "" {
		f.out = filepath.Join("runs", p.plan.RunID)
	}
	f.out = f.shardFolder(f.out)
	if _, err := schemas.ReadManifest(f.out); err == nil {
		return usage(fmt.Errorf("%s holds a finished run", f.out), "give another folder with --out")
	}
	send, err := f.target(ctx, a, p)
	if err != nil {
		return err
	}
	return a.record(ctx, f, p, o, send)
}

// record runs the plan, finishes its files and reports.
func (a *app) record(ctx context.Context, f *replayFlags, p *planned, o replay.Options, send sender) error {
	var memory thrift
	if !f.virtual {
		memory.start()
		defer memory.end()
	}
	footer := streamFooter(p.source, &p.meta, f.tf.seed)
	footer.Schema = schemas.TableResults
	line := a.progress()
	o.TTFTLimit = f.gate.TTFTLimit()
	if f.failFast {
		o.FailFast = f.hopeless(p.plan)
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	metrics, err := a.serveReplayMetrics(serving, f.metricsAddr)
	if err != nil {
		return err
	}
	rec, err := replay.NewRecorder(f.out, p.plan.RunID, footer)
	if err != nil {
		return err
	}
	o.OnProgress = func(s replay.Progress) {
		memory.look()
		line.show(replayProgress(s))
		if metrics != nil {
			metrics.show(s)
		}
	}
	if f.virtual {
		f.recordVirtual(&o, f.cluster, f.out, p.plan.RunID, footer)
	} else {
		f.record(&o, f.out, p.plan.RunID, footer)
	}
	met, err := f.await(ctx, a, &o)
	if err != nil {
		_ = rec.Discard()
		_ = os.Remove(f.out) // where it is empty
		return err
	}
	if met != nil {
		f.offset = met
	}
	f.startedAt = now()
	summary, err := send(ctx, o, rec)
	line.end()
	f.endedAt = now()
	if err != nil {
		_ = rec.Discard() // what was recorded stays; why the run broke off is what is told
		return err
	}
	p.plan = &replay.Plan{RunID: p.plan.RunID}
	debug.FreeOSMemory() // the rows of a large plan make room for the merge and the report
	return a.conclude(ctx, f, p, rec, summary)
}

// hopeless tells, result by result, whether the gate can no longer pass, and notes why.
func (f *replayFlags) hopeless(plan *replay.Plan) func(*schemas.Result) bool {
	watch := analyze.NewFailFast(f.gate, plan.All(), func(r *schemas.TraceRow) string {
		return plan.Phase(time.Duration(r.ScheduledUs) * time.Microsecond)
	})
	return func(r *schemas.Result) bool {
		broken := watch.Add(r)
		if broken != "" && f.broken == "" {
			f.broken = broken
		}
		return broken != ""
	}
}

// conclude finishes the files of a run that has ended, the manifest last, and reports.
func (a *app) conclude(ctx context.Context, f *replayFlags, p *planned, rec *replay.Recorder, summary *replay.Summary) error {
	if f.broken != "" {
		a.note("stopped: %s", f.broken)
	}
	summary.Invalid = append(summary.Invalid, f.contradicted...)
	f.facts(&summary.RunFacts)
	if !p.startedAt.IsZero() {
		summary.TraceStartedAt = &p.startedAt
	}
	summary.Clock = f.offset
	files, err := rec.Finish()
	if err != nil {
		return err
	}
	tables, seen, err := f.finish()
	if err != nil {
		return err
	}
	files = append(files, tables...)
	if seen != nil {
		f.targetDescription["telemetry"] = seen
		summary.Invalid = append(summary.Invalid, telemetry.Doubts(seen)...)
	}
	p.notes = append(p.notes, errorSentences(summary.ErrorKinds)...)
	if err := f.manifest(p, summary, files).Write(f.out); err != nil {
		return err
	}
	if err := a.reportRun(ctx, f); err != nil {
		return err
	}
	for _, text := range errorSentences(summary.ErrorKinds) {
		if f.asJSON {
			a.note("%s", text)
		} else {
			fmt.Fprintf(a.stdout, "%s\n", text)
		}
	}
	switch {
	case ctx.Err() != nil:
		a.code = exitInterrupted
	case summary.AbortedBy != "":
		a.note("stopped to protect the target: %s", summary.AbortedBy)
		if a.code == exitOK || a.code == exitInconclusive {
			a.code = exitFailure
		}
	}
	return nil
}

// reportRun prints the run's tails, and says whether the run itself was valid.
func (a *app) reportRun(ctx context.Context, f *replayFlags) error {
	data, err := loadResults(context.Background(), []string{f.out}, analyze.DefaultK)
	if err != nil {
		return err
	}
	report, err := analyze.Analyze(context.Background(), data, analyze.Options{Gate: f.gate})
	if err != nil {
		return err
	}
	a.code = verdictCode(report)
	if err := f.metrics.end(ctx, a, replayEnd(f, report, a.code)); err != nil {
		return err
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
	f.connections = client.Connections
	if f.targetDescription, err = probe(ctx, client, f.waitReady); err != nil {
		return nil, err
	}
	if first, ok := f.targetDescription["model"].(string); ok && f.model == "" {
		f.model = first
	}
	f.tlsWarning(a)
	f.contradicted = contradictions(f.labels, f.targetDescription)
	f.offset = f.clock(ctx, client)
	if err := f.watchTargets(ctx, a, &f.clusterFlags, f.targetDescription); err != nil {
		return nil, err
	}
	did, err := f.reset(ctx, client)
	if err != nil {
		return nil, err
	}
	if did != nil {
		f.targetDescription["reset_cache"] = did
	}
	return func(ctx context.Context, o replay.Options, rec *replay.Recorder) (*replay.Summary, error) {
		defer client.Close()
		s, err := replay.RunReal(ctx, p.plan, o, client, rec)
		if err != nil {
			return s, err
		}
		invalid, notes := client.Participation()
		s.Invalid = append(s.Invalid, invalid...)
		p.notes = append(p.notes, notes...)
		f.targetDescription["traffic"] = client.Facts()
		return s, nil
	}, nil
}

func (f *replayFlags) simulated(p *planned) (sender, error) {
	config, err := engine(f.URLs[0], f.faults)
	if err != nil {
		return nil, err
	}
	config.BlockSize = p.plan.BlockSize
	cluster, err := sim.NewCluster(config)
	if err != nil {
		return nil, err
	}
	f.cluster = cluster
	f.targetDescription = map[string]any{"simulated": f.URLs[0], "spec": config.String(), "preset": config.Preset, "replicas": config.Replicas}
	return func(ctx context.Context, o replay.Options, rec *replay.Recorder) (*replay.Summary, error) {
		return replay.RunVirtual(ctx, p.plan, o, cluster, rec)
	}, nil
}

func (f *replayFlags) client(a *app, p *planned) (*openai.Client, error) {
	salt := f.salt
	if salt == "" {
		salt = p.plan.RunID
	}
	o := f.clientOptions(a)
	o.Targets, o.Output, o.RunID = f.URLs, f.output, p.plan.RunID
	o.Prompts = &replay.Prompts{BlockSize: p.plan.BlockSize, Seed: f.tf.seed, Salt: salt, Prose: f.content == "prose"}
	return openai.New(o)
}

func (f *replayFlags) manifest(p *planned, s *replay.Summary, files []schemas.FileDigest) *schemas.Manifest {
	m := &schemas.Manifest{Kind: "run", Tool: version.String(), RunID: p.plan.RunID, Seed: f.tf.seed, Clock: "real",
		StartedAt: f.startedAt, EndedAt: f.endedAt, Settings: f.settings, Labels: f.labels, Target: f.targetDescription,
		Inputs: []schemas.FileDigest{p.source}, Files: files, Run: &s.RunFacts, Invariants: p.invariants, Notes: p.notes}
	if f.virtual {
		// A virtual run happens at no time of day: its clock starts at zero, and a repeat gives the same bytes.
		m.Clock = "virtual"
		m.StartedAt = time.Unix(0, 0).UTC()
		m.EndedAt = m.StartedAt.Add(s.Elapsed)
	}
	if !f.startTime.IsZero() {
		m.StartedAt = f.startTime // the same in all shards: one clock
	}
	return m
}

// runID names a run: by its content in virtual time, by its start in real time.
func (f *replayFlags) runID(p *planned) string {
	content, _ := json.Marshal(map[string]any{"settings": withoutShard(f.settings), "trace": p.meta.SHA256, "targets": f.URLs})
	sum := sha256.Sum256(content)
	id := hex.EncodeToString(sum[:6])
	if f.virtual {
		return "sim-" + id
	}
	if !f.startTime.IsZero() {
		return f.startTime.Format("20060102T150405Z") + "-" + id // the same in all shards
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

// makeDir makes a folder for outputs.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	return nil
}
