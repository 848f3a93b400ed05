package sim

import "strings"

// DefaultPreset is the engine that the spec "sim:" names.
const DefaultPreset = "llama-3.1-8b@1xh100"

// statedError is what every preset's figures are worth, from comparison with published measurements.
const statedError = "decode and light load ±10 %; mean TTFT excludes the front end (about 12 ms on a real server); " +
	"sustained prefill-bound load can be up to twice as fast here as on the real machine; near saturation a change " +
	"of 11 % in prompt length moves TPOT by 20–25 %, hence no Safe QPS"

const (
	kernelSource = "kernel times of ai-dynamo/aiconfigurator 095f58a (Apache-2.0), vLLM 0.24 tables, plus 1.0 ms host time " +
		"per step; non-negative least squares over 79–99 step shapes"
	kernelSourceA100 = "kernel times of ai-dynamo/aiconfigurator 095f58a (Apache-2.0), vLLM 0.14 tables, plus 1.0 ms host time " +
		"per step; non-negative least squares over 79–99 step shapes"
	memoryRule = "(share of GPU memory − weights − overhead) ÷ KV bytes per token: "
)

// Preset is a public model × hardware pair with coefficients, their source and their stated error.
type Preset struct {
	Name     string
	Config   Config // ready to run, one replica
	Source   string // of the coefficients
	KVSource string // of the KV capacity
	Error    string // never empty; a preset gives no Safe QPS for real hardware
	Checked  string // predicted ÷ measured − 1 against independent public measurements, without front end
}

// Presets lists every preset, sorted by name.
func Presets() []Preset {
	return []Preset{
		preset("deepseek-r1@8xh200-tp8", kernelSource,
			Config{A: 17.8, B: 0.0430, C: 0.0407, D: 0.0210e-3, F: 21.3, ActiveExperts: 8, Experts: 256,
				KVTokens: 600_000, MaxBatchedTokens: 8192, MaxNumSeqs: 1024, MaxModelLen: 24_576},
			memoryRule+"(125.8 − 80.2 − 5) GiB ÷ 70,272 B (MLA, on each rank); model length capped where the attention table ends",
			"gpustack, concurrency 4: TPOT +8 %; bursts of ShareGPT, 2K, 4K, 32K prompts: duration −5, −3, 0, −19 %"),
		preset("gpt-oss-120b@2xh100-tp2", kernelSource,
			Config{A: 4.39, B: 0.0141, C: 0.0139, D: 0.0045e-3, E: 0.200e-6, F: 11.7, ActiveExperts: 4, Experts: 128,
				KVTokens: 1_100_000, MaxBatchedTokens: 8192, MaxNumSeqs: 1024, MaxModelLen: 131_072},
			memoryRule+"(71.3 − 30.4 − 3) GiB ÷ 36 KiB, every layer counted as full attention",
			"gpustack, concurrency 4: TPOT +4 %; bursts of ShareGPT, 2K, 4K, 32K prompts: duration −6, −39, −38, −35 %"),
		preset("llama-3.1-70b@4xh100-tp4", kernelSource,
			Config{A: 15.50, B: 0.0522, C: 0.0322, D: 0.0298e-3, E: 0.655e-6,
				KVTokens: 484_016, MaxBatchedTokens: 8192, MaxNumSeqs: 1024, MaxModelLen: 131_072},
			"read from a vLLM log: 30,251 blocks of 16",
			"vLLM 0.15.1, 2.5 → 6 requests/s: ITL +4, TTFT +1, E2E +6 %; 5 → 10 requests/s: ITL +17, TTFT +8, E2E +18 %"),
		preset("llama-3.1-8b@1xa100-80g", kernelSourceA100,
			Config{A: 11.63, B: 0.0500, C: 0.0308, D: 0.0842e-3, E: 2.84e-6,
				KVTokens: 451_000, MaxBatchedTokens: 2048, MaxNumSeqs: 256, MaxModelLen: 131_072},
			memoryRule+"(71.3 − 15.0 − 1.25) GiB ÷ 128 KiB",
			"A100-40G sweep, 1024/128: tokens/s +10 % at concurrency 1, +1 % at 8, not corrected for bandwidth"),
		preset("llama-3.1-8b@1xh100", kernelSource,
			Config{A: 7.00, B: 0.0160, C: 0.0111, D: 0.0439e-3, E: 0.645e-6,
				KVTokens: 451_000, MaxBatchedTokens: 8192, MaxNumSeqs: 1024, MaxModelLen: 131_072},
			memoryRule+"(71.3 − 15.0 − 1.25) GiB ÷ 128 KiB",
			"guidellm 128/128, concurrency 64: TPOT +4 %, tokens/s −6 %; vLLM 0.15.1 codegen, roleplay, general: "+
				"ITL +2, −2, +13 %, TTFT −37, −31, −41 %"),
		preset("llama-3.3-70b-fp8@2xh200-tp2", kernelSource,
			Config{A: 14.26, B: 0.0722, C: 0.0389, D: 0.0392e-3, E: 0.975e-6,
				KVTokens: 1_165_000, MaxBatchedTokens: 8192, MaxNumSeqs: 1024, MaxModelLen: 131_072},
			memoryRule+"(125.8 − 33.9 − 3) GiB ÷ 80 KiB, FP8 KV",
			"TensorRT-LLM maximum throughput 1000/1000 and 8192/1024: −15, −21 % with the linear form"),
	}
}

func preset(name, source string, c Config, kvSource, checked string) Preset {
	c.Preset = name
	return Preset{Name: name, Config: c.withDefaults(), Source: source, KVSource: kvSource, Error: statedError, Checked: checked}
}

// Labels of the engines that have slots and no steps.
const (
	fixedPreset = "fixed" // every request is served in the same time
	queuePreset = "queue" // the service time follows a law
)

// slotsConfig is one of these before its keys are read; service is still to be given.
func slotsConfig(label string) Config {
	return Config{Preset: label, MaxNumSeqs: 1, MaxModelLen: 1 << 20}.withDefaults()
}

// served returns the model name that /v1/models and the metrics tell.
func (c *Config) served() string {
	if c.Model != "" {
		return c.Model
	}
	name, _, _ := strings.Cut(c.Preset, "@")
	if name == "" {
		return "sim"
	}
	return name
}
