package sim

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteHelp lists all that a spec can name: presets, keys by engine, faults.
func WriteHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`A spec names a simulated engine. It never issues a Safe QPS for real hardware.

  sim:[PRESET][,key=value]…                       continuous batching, step by step; no preset = ` + DefaultPreset + `
  sim:fixed:service=300ms[,slots=1][,key=value]…  slots with a fixed service time
  sim:queue:service=8s,dist=exponential[,slots=32][,key=value]…
                                                  slots with a service time of a law

`)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "Presets (one replica; tailgate sim --presets has their sources)\n")
	for _, p := range Presets() {
		fmt.Fprintf(tw, "  %s\t%s\n", p.Name, p.Checked)
	}
	fmt.Fprint(tw, "\nKeys of every engine\n")
	writeKeys(tw, func(k *Key) bool { return k.Steps && k.Fixed })
	fmt.Fprint(tw, "\nKeys of the step model\n")
	writeKeys(tw, func(k *Key) bool { return k.Steps && !k.Fixed })
	fmt.Fprint(tw, "\nKeys of fixed: and queue:\n")
	writeKeys(tw, func(k *Key) bool { return k.Fixed && !k.Steps })
	fmt.Fprint(tw, "\nKeys of queue:\n")
	writeKeys(tw, func(k *Key) bool { return k.Queue })
	fmt.Fprint(tw, "\nFaults, as KIND=VALUE in a spec (several are allowed) or as --fault KIND:VALUE\n")
	for _, d := range FaultDocs() {
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", d.Kind, d.Value, d.Doc)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	b.WriteString("\nSHARE is 0.01 or 1%; FROM and FOR are durations, FROM since the start, such as 120s: --fault kill:1@120s,for=60s\n")
	b.WriteString("is kill=1@120s+60s. Stated error of every preset: " + statedError + ".\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeKeys(w io.Writer, of func(*Key) bool) {
	for _, k := range Keys() {
		if !k.Fault && of(&k) {
			fmt.Fprintf(w, "  %s\t%s\n", k.Name, k.Doc)
		}
	}
}
