package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
	"tailgate/replay"
	"tailgate/replay/openai"
)

// clusterFlags say what is sent to, and what may be done to it.
type clusterFlags struct {
	urls            []string
	file            string
	allowProduction string
	resetCache      string

	replay.Targets
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.urls, "target", nil, "`URL` of an OpenAI-compatible server (repeatable), or sim:SPEC")
	fl.StringVar(&f.file, "targets", "", "targets file (YAML): urls, strategy, environment, max_rate, abort_if, reset_cache, labels")
	fl.StringVar(&f.allowProduction, "allow-production", "", "name of a production cluster in the targets file that may be sent to")
	fl.StringVar(&f.resetCache, "reset-cache", "", "before the run: URL to POST to, /path to POST to on every target, or a command")
}

// read reads the targets file and puts the flags over it. It reports every fault.
func (f *clusterFlags) readCluster(a *app) error {
	if f.file != "" && len(f.urls) > 0 {
		return errors.New("--target and --targets contradict each other")
	}
	f.Targets = replay.Targets{URLs: f.urls}
	if f.file != "" {
		data, err := smallfile.Config(f.file)
		if err != nil {
			return fmt.Errorf("reading targets file: %w", err)
		}
		t, err := replay.ParseTargets(f.file, data, a.getenv)
		if err != nil {
			return err
		}
		f.Targets = *t
	}
	if f.resetCache != "" {
		f.ResetCache = f.resetCache
	}
	if err := f.Allowed(f.allowProduction); err != nil {
		return fault.Mark(err, fault.Usage, "--allow-production "+f.Name+" allows it")
	}
	return nil
}

// checkRate holds the plan against what the cluster may be offered; a closed loop, whose rate is not known before,
// gets a rule that stops it.
func (f *clusterFlags) checkRate(at []time.Duration, closed bool) error {
	const over = replay.PaceWindow
	if f.MaxRate == 0 {
		return nil
	}
	if closed {
		// The rate of a running replay is itself a mean over this time.
		rule, err := replay.ParseAbortRule(fmt.Sprintf("sent_rate > %.6f for 1s", f.MaxRate))
		f.AbortIf = append(f.AbortIf, rule)
		return err
	}
	if rate := peakRate(at, over); rate > f.MaxRate {
		return usage(fmt.Errorf("the plan offers %.4g/s over 10 s, %s allows %.4g/s", rate, f.file, f.MaxRate), "take a lower --scale, or raise max_rate")
	}
	return nil
}

// reset empties the caches of the targets, and says what it did, for the manifest.
func (f *clusterFlags) reset(ctx context.Context, client *openai.Client) (map[string]any, error) {
	const patience = time.Minute
	if f.ResetCache == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	const what = "resetting the cache"
	var err error
	if !f.resetsByPost() {
		err = userCommand(ctx, what, f.ResetCache)
	} else if err = client.Reset(ctx, f.ResetCache); err != nil {
		err = fmt.Errorf("%s (%s): %w", what, f.ResetCache, err)
	}
	if err != nil {
		return nil, fault.Mark(err, fault.Failure, "")
	}
	return map[string]any{"how": f.ResetCache, "took_ms": time.Since(began).Milliseconds()}, nil
}

// resetsByPost tells a URL or a path below the targets from a command.
func (f *clusterFlags) resetsByPost() bool {
	for _, scheme := range []string{"http://", "https://"} {
		if strings.HasPrefix(f.ResetCache, scheme) {
			return true
		}
	}
	return strings.HasPrefix(f.ResetCache, "/") && !strings.ContainsFunc(f.ResetCache, unicode.IsSpace) && !isFile(f.ResetCache)
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// contradictions says which labels the target itself denies: a model that it does not serve, an engine that it is not.
func contradictions(labels map[string]string, told map[string]any) []string {
	var served, owners []string
	targets, _ := told["targets"].([]any)
	for _, t := range targets {
		about, _ := t.(map[string]any)
		models, _ := about["models"].([]any)
		for _, m := range models {
			model, _ := m.(map[string]any)
			if id, ok := model["id"].(string); ok {
				served = append(served, id)
			}
			if by, ok := model["owned_by"].(string); ok {
				owners = append(owners, by)
			}
		}
	}
	var out []string
	if label := labels["model"]; label != "" && len(served) > 0 && !anyAlike(served, label) {
		out = append(out, fmt.Sprintf("label model=%s, but the target serves %s", label, strings.Join(served, ", ")))
	}
	engines := []string{"vllm", "sglang", "tensorrt_llm"}
	if label := labels["engine"]; label != "" && anyAlike(engines, label) {
		for _, by := range owners {
			if anyAlike(engines, by) && !alike(by, label) {
				out = append(out, fmt.Sprintf("label engine=%s, but the target says %s", label, by))
				break
			}
		}
	}
	return out
}

func anyAlike(names []string, label string) bool {
	for _, n := range names {
		if alike(n, label) {
			return true
		}
	}
	return false
}

// alike compares names by their letters and digits; one may be part of the other, as the short name of a model is.
func alike(a, b string) bool {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	a, b = plain(a), plain(b)
	return strings.Contains(a, b) || strings.Contains(b, a)
}
