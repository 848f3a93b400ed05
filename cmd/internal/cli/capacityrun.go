package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/capacity"
	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
)

// capacityRunner makes the runs of a capacity test by the command lines that a person would type, and notes each of
// them in commands.txt.
type capacityRunner struct {
	app     *app
	plan    *capacity.Plan
	folder  string // of the plan file, which its paths are relative to
	dir     string // of the test
	traffic *capacity.Traffic
	profile string // made when first needed
	hits    capacity.Hits
}

// Run makes one run.
func (r *capacityRunner) Run(ctx context.Context, l capacity.Load, dir string) (err error) {
	trace, err := r.traceOf(ctx, l)
	if err != nil {
		return err
	}
	if trace != r.path(r.plan.Trace) {
		defer os.RemoveAll(filepath.Dir(trace))
	}
	restore, err := r.prepare(ctx, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	stop, err := r.hook(ctx, l)
	if err != nil {
		return err
	}
	err = r.command(ctx, r.replayArgs(l, trace, dir), exitOK, exitGateFailed, exitInvalid, exitInconclusive)
	return errors.Join(err, stop())
}

// path is a path of the plan, relative to the plan file.
func (r *capacityRunner) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(r.folder, p)
}

// replayArgs is the command line of `tailgate replay`.
func (r *capacityRunner) replayArgs(l capacity.Load, trace, dir string) []string {
	args := []string{"replay", trace, "--out", dir, "--seed", strconv.FormatUint(l.Seed, 10)}
	args = append(args, r.targetArgs(l)...)
	for _, k := range slices.Sorted(maps.Keys(r.plan.Labels)) {
		args = append(args, "--label", k+"="+r.plan.Labels[k])
	}
	for _, k := range slices.Sorted(maps.Keys(r.plan.Replay)) {
		args = append(args, "--"+k, r.plan.Replay[k])
	}
	window := l.Cell.Pattern == capacity.PatternReal || l.Drawn > 0
	if l.MaxInflight > 0 {
		args = append(args, "--max-inflight", strconv.Itoa(l.MaxInflight))
	}
	switch {
	case l.Offline: // a slot for every row
		args = append(args, "--concurrency", strconv.Itoa(max(1, r.traffic.Len())))
	case l.Concurrency > 0:
		args = append(args, "--concurrency", strconv.Itoa(l.Concurrency), "--duration", (l.Warmup + l.Length).String(), "--warmup", l.Warmup.String())
		if l.Cell.Class != capacity.Mix {
			args = append(args, "--classes", l.Cell.Class)
		}
	case window:
		args = append(args, "--window", fmt.Sprintf("%v..%v", l.From, l.From+l.Length), "--lead-in", min(l.Warmup, l.From).String(),
			"--scale", strconv.FormatFloat(l.Scale, 'g', -1, 64))
		if l.Cell.Class != capacity.Mix {
			if l.Others > 0 {
				args = append(args, "--scale-classes", l.Cell.Class)
			} else {
				args = append(args, "--classes", l.Cell.Class)
			}
		}
	case len(l.Bursts) > 0: // declared, so that recovery is judged: the rows are moved to a rate with bursts
		args = append(args, "--warmup", l.Warmup.String(), "--request-rate", perSecond(l.Rate+l.Others), "--duration", (l.Warmup + l.Length).String())
		args = append(args, arrivals(l)...)
		for _, b := range l.Bursts {
			args = append(args, "--burst", fmt.Sprintf("at=%v,for=%v,x=%g", l.Warmup+b.At, b.For, b.X))
		}
	default:
		args = append(args, "--warmup", l.Warmup.String())
	}
	return args
}

func perSecond(rate float64) string { return strconv.FormatFloat(rate, 'g', 8, 64) + "/s" }

// arrivals are the flags of a synthetic pattern.
func arrivals(l capacity.Load) []string {
	shape := capacity.Burstiness(l.Cell.Pattern)
	if shape == 1 {
		return []string{"--arrivals", "poisson"}
	}
	return []string{"--arrivals", "gamma", "--burstiness", strconv.FormatFloat(shape, 'g', -1, 64)}
}

func (r *capacityRunner) targetArgs(l capacity.Load) []string {
	target, targets := r.plan.Target, r.plan.Targets
	switch {
	case l.Cluster == capacity.ClusterMinus1 && r.plan.NMinus1.Remove == "":
		target, targets = r.plan.NMinus1.Target, r.plan.NMinus1.Targets
	case l.Cluster == capacity.ClusterB && r.plan.Pairs.Target+r.plan.Pairs.Targets != "":
		target, targets = r.plan.Pairs.Target, r.plan.Pairs.Targets
	}
	var args []string
	if targets != "" {
		args = append(args, "--targets", r.path(targets))
	} else {
		args = append(args, "--target", freshSim(target, r.plan.Seed, l.Name))
	}
	if l.Lose != "" && !strings.HasPrefix(l.Lose, hookPrefix) {
		args = append(args, "--fault", fmt.Sprintf("%s@%v", l.Lose, l.Warmup+l.LoseAt))
	}
	return args
}

// freshSim gives a simulated cluster a seed of its own in every run, as no two hours of a real one are alike.
func freshSim(target string, seed uint64, run string) string {
	if !strings.HasPrefix(target, "sim:") || strings.Contains(target, "seed=") {
		return target
	}
	sep := ","
	if target == "sim:" {
		sep = ""
	}
	return fmt.Sprintf("%s%sseed=%d", target, sep, rng.New(seed, run).Uint32())
}

// traceOf is what the run replays: the plan's trace, or one that is drawn from its profile for the run.
func (r *capacityRunner) traceOf(ctx context.Context, l capacity.Load) (string, error) {
	if l.Layer == capacity.LayerMicro {
		return r.microTrace(ctx, l)
	}
	if l.Concurrency > 0 || l.Offline || l.Cell.Pattern == capacity.PatternReal {
		return r.path(r.plan.Trace), nil
	}
	profile, err := r.profileDir(ctx)
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(r.dir, "trace-")
	if err != nil {
		return "", fmt.Errorf("making a folder for a trace: %w", err)
	}
	out := filepath.Join(folder, l.Name+".jsonl.zst")
	length, rate := l.Warmup+l.Length, l.Rate
	if l.Drawn > 0 { // the one draw that a window is taken of, whole
		length, rate = l.From+l.Length, l.Drawn
	}
	for _, b := range l.Bursts { // the rows that they take more
		length += time.Duration(b.X * float64(b.For))
	}
	args := []string{"synth", profile, "-o", out, "--request-rate", perSecond(rate + l.Others), "--duration", length.String(),
		"--seed", strconv.FormatUint(l.Seed, 10)}
	args = append(args, arrivals(l)...)
	if l.Cell.Class != capacity.Mix {
		args = append(args, "--class-mix", r.classMix(l, rate))
	}
	if l.InputLengths != "" {
		args = append(args, "--input-lengths", l.InputLengths)
	}
	if err := r.command(ctx, args, exitOK); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return out, nil
}

// Draw reads the trace that a synthetic load is made of.
func (r *capacityRunner) Draw(ctx context.Context, l capacity.Load) (*capacity.Traffic, error) {
	path, err := r.traceOf(ctx, l)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Dir(path))
	traffic, _, err := r.app.traffic(ctx, path, nil)
	return traffic, err
}

// microRows is how many requests of one length lie ready for a closed loop.
const microRows = 200_000

// microTrace draws requests of one length; a closed loop takes as many of them as its time holds.
func (r *capacityRunner) microTrace(ctx context.Context, l capacity.Load) (string, error) {
	folder, err := os.MkdirTemp(r.dir, "trace-")
	if err != nil {
		return "", fmt.Errorf("making a folder for a trace: %w", err)
	}
	out := filepath.Join(folder, l.Name+".jsonl.zst")
	err = r.command(ctx, []string{"synth", "-o", out, "--input-length", l.InputLengths, "--output-length", l.OutputLengths, "--request-rate", "1000/s",
		"--requests", strconv.Itoa(microRows), "--duration", "1h", "--arrivals", "constant", "--seed", strconv.FormatUint(l.Seed, 10)}, exitOK)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return out, nil
}

// profileDir is the plan's profile, or one made of its trace once.
func (r *capacityRunner) profileDir(ctx context.Context) (string, error) {
	if r.plan.Profile != "" {
		return r.path(r.plan.Profile), nil
	}
	dir := filepath.Join(r.dir, "profile")
	if r.profile == "" {
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
			if err := r.command(ctx, []string{"profile", r.path(r.plan.Trace), "-o", dir}, exitOK); err != nil {
				return "", err
			}
		}
		r.profile = dir
	}
	return r.profile, nil
}

// profileUsed is the profile of the test with its id: the plan's, or the one that was made of the trace; "" = none was needed.
func (r *capacityRunner) profileUsed() (path, id string, err error) {
	path, at := r.plan.Profile, r.path(r.plan.Profile)
	if path == "" {
		path, at = "profile", filepath.Join(r.dir, "profile")
		if _, err := os.Stat(filepath.Join(at, schemas.ManifestName)); err != nil {
			return "", "", nil
		}
	}
	p, err := profile.ReadTables(at)
	if err != nil {
		return "", "", err
	}
	return path, p.Meta[0].ProfileID, nil
}

// command runs one command line in this process; its output goes to the log of the test.
func (r *capacityRunner) command(ctx context.Context, args []string, good ...int) error {
	var errs bytes.Buffer
	log, err := os.OpenFile(filepath.Join(r.dir, "commands.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of commands: %w", err)
	}
	defer log.Close()
	if _, err := fmt.Fprintf(log, "tailgate %s\n", strings.Join(args, " ")); err != nil {
		return fmt.Errorf("writing the log of commands: %w", err)
	}
	a := *r.app
	a.code, a.quiet, a.stderr, a.log = 0, true, &errs, nil
	a.stdout = &bytes.Buffer{}
	code := a.run(ctx, args)
	if slices.Contains(good, code) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text, hint, _ := strings.Cut(strings.TrimSpace(errs.String()), "\nhint: ")
	return fault.Mark(&stepError{step: args[0], code: code, text: text}, kindOf(code), hint)
}

func kindOf(code int) fault.Kind {
	switch code {
	case exitUsage:
		return fault.Usage
	case exitData:
		return fault.Data
	case exitKey:
		return fault.Key
	}
	return fault.Failure
}

const hookPrefix = "hook:"

// hook starts a user's command that takes a replica away when its time has come; stop waits for it, or calls it off.
func (r *capacityRunner) hook(ctx context.Context, l capacity.Load) (stop func() error, err error) {
	text, ok := strings.CutPrefix(l.Lose, hookPrefix)
	if !ok {
		return func() error { return nil }, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	done, begun := make(chan error, 1), make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			done <- errors.New("the run ended before the command's time")
			return
		case <-time.After(l.Warmup + l.LoseAt):
		}
		close(begun)
		done <- userCommand(ctx, "taking a replica away", text)
	}()
	return func() error {
		defer cancel()
		select {
		case <-begun:
		default:
			cancel()
		}
		return <-done
	}, nil
}

// prepare brings the cluster into the state that the run needs, by the plan's commands, and returns what undoes it.
func (r *capacityRunner) prepare(ctx context.Context, l capacity.Load) (restore func() error, err error) {
	nothing := func() error { return nil }
	if n := r.plan.NMinus1; n != nil && n.Remove != "" && l.Cluster == capacity.ClusterMinus1 {
		if err := userCommand(ctx, "taking a replica away", n.Remove); err != nil {
			return nil, err
		}
		if n.Restore == "" {
			return nothing, nil
		}
		// Also when the run was interrupted: the cluster must not stay small.
		return func() error { return userCommand(context.WithoutCancel(ctx), "bringing the replica back", n.Restore) }, nil
	}
	if p := r.plan.Pairs; p != nil && p.Hook != "" && l.Layer == capacity.LayerPairs {
		arm := "a"
		if l.Cluster == capacity.ClusterB {
			arm = "b"
		}
		return nothing, userCommand(ctx, "changing to arm "+arm, p.Hook, "TAILGATE_ARM="+arm)
	}
	return nothing, nil
}

// classMix are the rates of the cell's class and of the others, which synth takes as shares.
func (r *capacityRunner) classMix(l capacity.Load, rate float64) string {
	mix := []string{fmt.Sprintf("%s=%g", l.Cell.Class, rate)}
	if l.Others > 0 {
		all := 0.0
		others := map[string]float64{}
		for _, c := range r.traffic.Classes() {
			if c != l.Cell.Class {
				others[c] = r.traffic.Rate(c, 0, r.traffic.Length)
				all += others[c]
			}
		}
		for _, c := range slices.Sorted(maps.Keys(others)) {
			mix = append(mix, fmt.Sprintf("%s=%g", c, others[c]/all*l.Others))
		}
	}
	return strings.Join(mix, ",")
}
