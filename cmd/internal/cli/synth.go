package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/internal/percent"
	"tailgate/internal/version"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
)

// synthFlags say what traffic to make.
type synthFlags struct {
	arrivals     string
	burstiness   float64
	scale        string
	requestRate  string
	rateSeries   string
	ramp         bool
	duration     time.Duration
	from         time.Duration
	requests     int64
	bursts       []string
	inputs       string
	outputs      string
	classMix     string
	turns        string
	thinkTime    string
	growth       string
	prefixShare  string
	prefixes     int
	blockSize    int
	seed         uint64
	inputLength  string
	outputLength string
}

func (f *synthFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.arrivals, "arrivals", "", `when sessions start:
profile   by the profile's own law and rate curve (default with a profile)
poisson   exponential gaps (default without one)
gamma     Gamma gaps of a given --burstiness
constant  equal gaps`)
	fl.Float64Var(&f.burstiness, "burstiness", 0, "of gamma arrivals: the shape; 1 = Poisson, below 1 burstier")
	fl.StringVar(&f.scale, "scale", "", "times the profile's rate: 1.5x, 1.5 or 150%")
	fl.StringVar(&f.requestRate, "request-rate", "", "mean rate such as 30/s, or a ramp such as 5/s..30/s (default: the profile's)")
	fl.StringVar(&f.rateSeries, "rate-series", "", "CSV file of time,rate lines (seconds or 10m; requests/s) instead of a rate")
	fl.BoolVar(&f.ramp, "ramp", false, "the rate of --rate-series goes in a line from point to point instead of holding until the next")
	fl.DurationVar(&f.duration, "duration", 0, "of the trace (default: the profile's, or that of the series)")
	fl.DurationVar(&f.from, "from", 0, "begin at this moment of the profile's window, such as 14h")
	fl.Int64Var(&f.requests, "requests", 0, "stop after this many requests (0 = no limit)")
	fl.StringArrayVar(&f.bursts, "burst", nil, "splice in a `burst`, such as at=10m,for=30s,x=4 (repeatable)")
	fl.StringVar(&f.inputLength, "input-length", "", "one input length in tokens; the same as --input-lengths")
	fl.StringVar(&f.outputLength, "output-length", "", "one output length in tokens; the same as --output-lengths")
	fl.StringVar(&f.inputs, "input-lengths", "", "input lengths: 512, 1024..8192, short, mid, long, or shares: short=0.6,mid=0.3,8192..=0.1 (default: the profile's)")
	fl.StringVar(&f.outputs, "output-lengths", "", "output lengths, in the same way")
	fl.StringVar(&f.classMix, "class-mix", "", "shares of the requests by class: chat=0.7,agent=0.3 (default: the profile's)")
	fl.StringVar(&f.turns, "turns", "", "turns of a session: 5, 1..8, or 1=0.7,2..4=0.3 (default: the profile's, or 1)")
	fl.StringVar(&f.thinkTime, "think-time", "", "time from turn to turn: 30s, or median and sigma of a lognormal: 30s,1.2 (default: the profile's)")
	fl.StringVar(&f.growth, "growth", "", "tokens that a later turn adds to the prompt and answer before it, written as for --turns (default: the profile's)")
	fl.StringVar(&f.prefixShare, "prefix-share", "", "share of a first prompt's whole blocks that other sessions have too: 0.5 or 50% (default: the profile's)")
	fl.IntVar(&f.prefixes, "prefixes", 0, "with --prefix-share: number of different shared prefixes, all as frequent (default: those of the profile, or 1)")
	fl.IntVar(&f.blockSize, "block-size", 0, "tokens per hash id (default: the profile's; 512 where --prefix-share or --turns need ids)")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of everything that is drawn")
}

// options reads the flags and reports every fault of them.
func (f *synthFlags) options() (synth.ModelOptions, error) {
	o := synth.ModelOptions{Arrivals: f.arrivals, Burstiness: f.burstiness, Duration: f.duration, From: f.from, Requests: f.requests,
		Prefixes: f.prefixes, BlockSize: f.blockSize, Seed: f.seed}
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	var err error
	if f.scale != "" {
		o.Scale, err = synth.ParseScale(f.scale)
		check(err)
	}
	if f.requestRate != "" {
		o.RequestRate, o.RateEnd, err = parseRates(f.requestRate)
		check(err)
	}
	if f.ramp && f.rateSeries == "" {
		check(errors.New("--ramp needs --rate-series; a plain ramp is --request-rate 5/s..30/s"))
	}
	o.Input, err = lengthsOf("input", f.inputLength, f.inputs)
	check(err)
	o.Output, err = lengthsOf("output", f.outputLength, f.outputs)
	check(err)
	for _, s := range f.bursts {
		b, err := synth.ParseBurst(s)
		check(err)
		if err == nil {
			o.Bursts = append(o.Bursts, b)
		}
	}
	o.ClassMix, err = parseClassMix(f.classMix)
	check(err)
	if f.turns != "" {
		o.Turns, err = synth.ParseIntDist("turns", f.turns)
		check(err)
	}
	if f.growth != "" {
		o.Growth, err = synth.ParseIntDist("growth", f.growth)
		check(err)
	}
	o.ThinkTime, err = parseThinkTime(f.thinkTime)
	check(err)
	o.PrefixShare, err = parsePrefixShare(f.prefixShare)
	check(err)
	if f.rateSeries != "" {
		o.RateSeries, err = readRateSeries(f.rateSeries, f.ramp)
		check(err)
		if err != nil {
			return o, errors.Join(errs...) // a broken file is not wrong usage
		}
	}
	return o, allFaults(append(errs, o.Validate())...)
}

func readRateSeries(path string, ramp bool) (synth.RateSeries, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading rate series: %w", err)
	}
	defer file.Close()
	return synth.ReadRateSeries(file, path, ramp)
}

// parseRates reads 30/s, or 5/s..30/s.
func parseRates(s string) (from, to float64, err error) {
	a, b, ramp := strings.Cut(s, "..")
	var r rateFlag
	if err := r.Set(a); err != nil {
		return 0, 0, fmt.Errorf("--request-rate: %w", err)
	}
	from = float64(r)
	if ramp {
		if err := r.Set(b); err != nil {
			return 0, 0, fmt.Errorf("--request-rate: %w", err)
		}
		to = float64(r)
	}
	return from, to, nil
}

func lengthsOf(dim, one, several string) (synth.LengthSpec, error) {
	if one != "" && several != "" {
		return nil, fmt.Errorf("--%s-length and --%s-lengths contradict each other", dim, dim)
	}
	if one+several == "" {
		return nil, nil
	}
	return synth.ParseLengths(one + several)
}

// parseClassMix reads class=share pairs.
func parseClassMix(s string) (map[string]float64, error) {
	if s == "" {
		return nil, nil
	}
	out := map[string]float64{}
	for _, part := range strings.Split(s, ",") {
		name, share, ok := strings.Cut(part, "=")
		v, err := percent.Parse(share)
		if _, twice := out[name]; !ok || name == "" || err != nil || twice {
			return nil, fmt.Errorf("--class-mix: %q is not a class=share of its own, such as chat=0.7", part)
		}
		out[name] = v
	}
	return out, nil
}

func parseThinkTime(s string) (*synth.DurationDist, error) {
	if s == "" {
		return nil, nil
	}
	median, sigma, spread := strings.Cut(s, ",")
	var d synth.DurationDist
	var err error
	if d.Median, err = time.ParseDuration(median); err == nil && spread {
		d.Sigma, err = strconv.ParseFloat(sigma, 64)
	}
	if err != nil {
		return nil, fmt.Errorf("--think-time: %q is not a time such as 30s, or a median and a sigma such as 30s,1.2", s)
	}
	return &d, nil
}

func parsePrefixShare(s string) (*float64, error) {
	if s == "" {
		return nil, nil
	}
	v, err := percent.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("--prefix-share: %q is not a share such as 0.5 or 50%%", s)
	}
	return &v, nil
}

func (a *app) synthCommand() *cobra.Command {
	var f synthFlags
	var to, out string
	cmd := &cobra.Command{
		Use:   "synth [PROFILE_DIR] -o OUT",
		Short: "Make a trace of traffic like a profile's, or of lengths and a rate",
		Long: `Draws sessions by the laws of a profile that ` + "`tailgate profile`" + ` or ` + "`tailgate profile servegen`" + ` wrote: arrivals, lengths with their
dependence, turns, prefix sharing. Every knob stands for itself; what is not given follows the profile. Without a profile the
lengths and the rate must be given: a micro-benchmark is

  tailgate synth --input-length 512 --output-length 128 --request-rate 10/s --duration 10m -o micro.jsonl

docs/synth.md says what is kept and what is lost.

Exit codes: 0 done; 1 failed while running; 2 wrong usage, or the profile cannot give what is asked; 6 a broken file.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options()
			if out == "" {
				err = errors.Join(err, usage(errors.New("-o is missing"), ""))
			}
			if err := errors.Join(err, usage(writable(to), "")); err != nil {
				return err
			}
			var p *profile.Profile
			if len(args) == 1 {
				if p, err = profile.Read(args[0]); err != nil {
					return err
				}
			}
			started := now()
			d, err := synth.StreamProfile(cmd.Context(), p, o)
			if err != nil {
				return err
			}
			a.tellSynth(d)
			if err := a.writeStream(cmd.Context(), d.Stream, out, formatOf(out, to), version.String()); err != nil || out == "-" {
				return err
			}
			return synthManifest(cmd, p, args, d, f.seed, started, out)
		},
	}
	f.add(cmd)
	addOutput(cmd.Flags(), &to, &out)
	return cmd
}

// tellSynth says what was drawn.
func (a *app) tellSynth(d *synth.Drawn) {
	rate := ""
	if s := float64(d.LengthUs()) / 1e6; s > 0 {
		rate = fmt.Sprintf(" (%.4g/s over %.4g s)", float64(d.Len())/s, s)
	}
	n := float64(max(d.Len(), 1))
	a.note("%d requests%s, mean input %.4g, mean output %.4g tokens", d.Len(), rate, float64(d.InputTokens)/n, float64(d.OutputTokens)/n)
	for _, note := range d.Notes {
		a.note("%s", note)
	}
}

// synthManifest writes OUT.manifest.json: the settings, the profile and what was chosen.
func synthManifest(cmd *cobra.Command, p *profile.Profile, args []string, d *synth.Drawn, seed uint64, started time.Time, out string) error {
	file, err := schemas.DigestFile(filepath.Dir(out), out)
	if err != nil {
		return err
	}
	file.Rows = d.Len()
	m := &schemas.Manifest{Kind: "trace", Tool: version.String(), Seed: seed, StartedAt: started, EndedAt: now(),
		Settings: settings(cmd), Files: []schemas.FileDigest{file}, Notes: d.Notes}
	if p != nil {
		of, err := schemas.ReadManifest(args[0])
		if err != nil {
			return fmt.Errorf("reading the profile's manifest: %w", err)
		}
		m.Inputs = of.Files
	}
	return m.WriteFile(out + "." + schemas.ManifestName)
}
