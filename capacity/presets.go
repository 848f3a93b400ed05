package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tailgate/internal/fault"
)

// mlperf are the latency limits of MLPerf Inference's server scenarios, p99 in ms (loadgen/mlperf.conf of MLCommons,
// v5.1): ttft and tpot. Interactive scenarios have names of their own.
var mlperf = map[string][2]int{
	"llama2-70b": {2000, 200}, "llama2-70b-interactive": {450, 40},
	"llama3.1-405b": {6000, 175}, "llama3.1-405b-interactive": {4500, 80},
	"llama3.1-8b": {2000, 100}, "llama3.1-8b-interactive": {500, 30},
	"deepseek-r1": {2000, 80}, "deepseek-r1-interactive": {1500, 15},
	"gpt-oss-120b": {3000, 80}, "gpt-oss-120b-interactive": {2000, 15},
}

const mlperfPrefix = "mlperf-server:"

// PresetGate is the text of a gate by name, such as mlperf-server:llama2-70b.
func PresetGate(name string) (string, error) {
	model, ok := strings.CutPrefix(name, mlperfPrefix)
	limits, known := mlperf[model]
	if !ok || !known {
		names := slices.Sorted(maps.Keys(mlperf))
		return "", fault.Mark(fmt.Errorf("unknown preset %q", name), fault.Usage, "presets: "+mlperfPrefix+strings.Join(names, ", "+mlperfPrefix))
	}
	return fmt.Sprintf("capacity_gate:\n  ttft_p99: \"<= %dms\"\n  tpot_p99: \"<= %dms\"\n", limits[0], limits[1]), nil
}
