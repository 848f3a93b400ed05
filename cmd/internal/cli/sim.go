package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"tailgate/sim"
)

func (a *app) simCommand() *cobra.Command {
	var listen, truth string
	var presets bool
	var faults []string
	cmd := &cobra.Command{
		Use:   "sim [SPEC]",
		Short: "Serve a simulated engine over HTTP",
		Long: `Serves the simulated engine in real time with the OpenAI API and vLLM's metric names. SPEC names a preset
and settings, as in --target sim:SPEC, for example llama-3.1-8b@1xh100,replicas=2; tailgate sim help lists
them all. It never states a capacity of real hardware: see docs/sim.md for the model and its error.

Exit codes: 0 stopped by a signal; 1 cannot listen; 2 wrong usage.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if presets {
				return a.printPresets()
			}
			spec := "sim:"
			if len(args) == 1 {
				spec += strings.TrimPrefix(args[0], "sim:")
			}
			if spec == simHelp {
				return sim.WriteHelp(a.stdout)
			}
			config, err := engine(spec, faults)
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), config, listen, truth)
		},
	}
	cmd.AddCommand(a.simFitCommand())
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8000", "address to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&truth, "truth", "", "at the end write when each request was received and each token written (Parquet)")
	addFaults(cmd, &faults)
	cmd.Flags().BoolVar(&presets, "presets", false, "list the presets with their source and stated error")
	return cmd
}

// simHelp is the spec that lists what a spec can name.
const simHelp = "sim:help"

func addFaults(cmd *cobra.Command, faults *[]string) {
	cmd.Flags().StringArrayVar(faults, "fault", nil,
		"`fault` of the simulated engine (repeatable), such as kill:1@120s,for=60s or cut:1%; tailgate sim help lists them")
}

// engine reads a spec with further faults, and reports what is wrong with all of them.
func engine(spec string, faults []string) (sim.Config, error) {
	config, err := sim.ParseSpec(spec)
	errs := []error{err}
	for _, text := range faults {
		f, err := sim.ParseFault(text)
		errs = append(errs, err)
		config.Faults = append(config.Faults, f)
	}
	if err := allFaults(errs...); err != nil {
		return sim.Config{}, err
	}
	return config, config.Validate()
}

func (a *app) printPresets() error {
	for _, p := range sim.Presets() {
		c := p.Config
		fmt.Fprintf(a.stdout, "%s\n  step_ms: a=%g b=%g c=%g d=%g e=%g", p.Name, c.A, c.B, c.C, c.D, c.E)
		if c.F > 0 {
			fmt.Fprintf(a.stdout, " f=%g (%d/%d experts)", c.F, c.ActiveExperts, c.Experts)
		}
		fmt.Fprintf(a.stdout, "\n  limits: kv_tokens=%d max_num_batched_tokens=%d max_num_seqs=%d max_model_len=%d\n", c.KVTokens,
			c.MaxBatchedTokens, c.MaxNumSeqs, c.MaxModelLen)
		fmt.Fprintf(a.stdout, "  source: %s\n  KV: %s\n  checked: %s\n  stated error: %s\n", p.Source, p.KVSource, p.Checked, p.Error)
	}
	return nil
}

// serve runs the simulated engine until the context ends, then lets requests in flight finish. A second signal cuts
// them.
func (a *app) serve(ctx context.Context, config sim.Config, address, truth string) (err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", address, err)
	}
	defer l.Close()
	o := sim.ServerOptions{Log: a.logger()}
	if truth != "" {
		if o.Truth, err = sim.NewTruthLog(truth); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Truth.Close()) }()
	}
	server, err := sim.NewServer(config, o)
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintf(a.stdout, "listening on http://%s\n", l.Addr())
	served := make(chan struct{})
	defer close(served)
	go func() {
		select {
		case <-a.abort:
			server.Close()
		case <-served:
		}
	}()
	return server.Serve(ctx, l)
}
