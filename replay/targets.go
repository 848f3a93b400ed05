package replay

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"tailgate/internal/yamldoc"
)

// Strategies of spreading requests over targets.
const (
	StrategyRoundRobin    = "round_robin"
	StrategyLeastInFlight = "least_in_flight"
	StrategySticky        = "sticky" // by session
)

// EnvironmentProduction is the environment that needs a word of consent by name.
const EnvironmentProduction = "production"

// Targets is a parsed targets file: what a cluster is, and what may be done to it.
type Targets struct {
	Name        string   // of the cluster; consent to production is given by it
	URLs        []string // at least one
	Strategy    string   // "" = round robin
	Environment string   // free text; EnvironmentProduction has a meaning
	// MaxRate is the most requests per second, over 10 s, that may be offered; 0 = no bound.
	MaxRate float64
	AbortIf []AbortRule
	// ResetCache is a URL to POST to, a path to POST to below each target, or a command; "" = none.
	ResetCache string
	Labels     map[string]string
}

// ParseTargets reads a targets file:
//
//	name: eu-2
//	targets: [http://10.0.0.1:8000, http://10.0.0.2:8000]
//	strategy: least_in_flight      # round_robin (default), least_in_flight, sticky
//	environment: staging           # production needs --allow-production NAME
//	max_rate: 50/s
//	abort_if: [waiting > 500 for 60s, error_rate > 20% for 30s]
//	reset_cache: /reset_prefix_cache
//	labels: {engine: vllm, gpu: H100}
//
// ${NAME} in a value is replaced by lookup(NAME). Every fault is reported with its line, as fault.Usage.
func ParseTargets(name string, data []byte, lookup func(string) (string, bool)) (*Targets, error) {
	r, root := yamldoc.New(name, data, lookup)
	if root == nil {
		return nil, r.Err()
	}
	t := &Targets{}
	fields := r.Fields(root, "a targets file", "name", "targets", "strategy", "environment", "max_rate", "abort_if", "reset_cache", "labels")
	if !yamldoc.IsMapping(root) { // which is told, and that all is missing need not be
		return nil, r.Err()
	}
	for _, f := range fields {
		switch f.Key {
		case "name":
			t.Name, _ = r.Text(f.Value)
		case "targets":
			t.URLs = readURLs(r, f.Value)
		case "strategy":
			t.Strategy = r.Word(f.Value, StrategyRoundRobin, StrategyLeastInFlight, StrategySticky)
		case "environment":
			t.Environment, _ = r.Text(f.Value)
		case "max_rate":
			t.MaxRate = readRate(r, f.Value)
		case "abort_if":
			for _, n := range r.List(f.Value) {
				if text, ok := r.Text(n); ok {
					rule, err := ParseAbortRule(text)
					if err != nil {
						r.Faultf(n, "%w", err)
					}
					t.AbortIf = append(t.AbortIf, rule)
				}
			}
		case "reset_cache":
			t.ResetCache, _ = r.Text(f.Value)
		case "labels":
			t.Labels = r.Texts(f.Value, "labels")
		}
	}
	if len(t.URLs) == 0 {
		r.Faultf(root, "targets are missing")
	}
	if t.Environment == EnvironmentProduction && t.Name == "" {
		r.Faultf(root, "a production cluster needs a name, by which its use is allowed")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

func readURLs(r *yamldoc.Reader, n yamldoc.Node) []string {
	var out []string
	seen := map[string]bool{}
	for _, item := range r.List(n) {
		text, ok := r.Text(item)
		switch u, err := url.Parse(text); {
		case !ok:
		case strings.HasPrefix(text, "sim:"):
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			r.Faultf(item, "%q is not a URL such as http://host:8000", text)
		case seen[text]:
			r.Faultf(item, "%s stands twice", text)
		}
		seen[text] = true
		out = append(out, text)
	}
	return out
}

// readRate reads a rate per second: 30 or 30/s.
func readRate(r *yamldoc.Reader, n yamldoc.Node) float64 {
	text, ok := r.Text(n)
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if ok && (err != nil || !(v > 0) || math.IsInf(v, 0)) {
		r.Faultf(n, "%q is not a rate such as 30/s", text)
	}
	return v
}

// Allowed tells why a run against the cluster needs consent; null when consent, the name given with
// --allow-production, covers it or none is needed.
func (t *Targets) Allowed(consent string) error {
	if t.Environment != EnvironmentProduction || consent == t.Name {
		return nil
	}
	if consent != "" {
		return fmt.Errorf("the targets are production cluster %s, consent was given for %s", t.Name, consent)
	}
	return fmt.Errorf("the targets are a production cluster, %s", t.Name)
}
