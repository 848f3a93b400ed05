package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"tailgate/schemas"
)

// The flags of a plan come back from the settings that a manifest keeps of them.
func TestPlanOfSettings(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"--scale", "1.5x", "--window", "5m..10m", "--lead-in", "1m", "--classes", "chat,batch", "--seed", "7"},
		{"--request-rate", "30/s", "--burst", "at=1m,for=30s,x=4", "--burst", "at=3m,for=30s,x=2", "--burstiness", "0.5"},
		{"--target-rate", "12/s", "--mode", "warp", "--warmup", "30s", "--sample-sessions", "10%", "--clip-input", "4096"},
	} {
		var f planFlags
		cmd := &cobra.Command{}
		f.addPlan(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		m := &schemas.Manifest{Settings: settings(cmd)}
		got, err := planOf(m)
		if err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if got.shape.scale != f.shape.scale || got.shape.window != f.shape.window || got.leadIn != f.leadIn || got.warmup != f.warmup ||
			got.tf.seed != f.tf.seed || got.shape.mode != f.shape.mode || got.shape.targetRate != f.shape.targetRate ||
			got.shape.sample != f.shape.sample || got.shape.clipInput != f.shape.clipInput || got.rate.requestRate != f.rate.requestRate {
			t.Errorf("%v: %+v", args, got)
		}
		if diff := cmp.Diff(f.shape.classes, got.shape.classes); diff != "" {
			t.Errorf("%v: %s", args, diff)
		}
		if diff := cmp.Diff(f.rate.bursts, got.rate.bursts); diff != "" {
			t.Errorf("%v: %s", args, diff)
		}
	}
}
