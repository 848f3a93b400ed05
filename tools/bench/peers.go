package main

// peerRows are benchmarks that time themselves in step with another, mostly a program of others. Where that program is
// not installed the row says so, and no floor is judged.
var peerRows = []metricRow{
	{"o200k, the mix", "internal/bpe.BenchmarkTiktoken/o200k/mix", "tiktoken", 3.5},
	{"o200k, English", "internal/bpe.BenchmarkTiktoken/o200k/en", "tiktoken", 5},
	{"o200k, program text", "internal/bpe.BenchmarkTiktoken/o200k/code", "tiktoken", 5},
	{"o200k, Chinese with markup", "internal/bpe.BenchmarkTiktoken/o200k/zh", "tiktoken", 3},
	{"o200k, long lines of Han", "internal/bpe.BenchmarkTiktoken/o200k/zhlines", "tiktoken", 2},
	{"o200k, Japanese", "internal/bpe.BenchmarkTiktoken/o200k/ja", "tiktoken", 3},
	{"o200k, emoji", "internal/bpe.BenchmarkTiktoken/o200k/emoji", "tiktoken", 2.2},
	{"o200k, broken UTF-8", "internal/bpe.BenchmarkTiktoken/o200k/bad", "tiktoken", 2.2},
	{"o200k, random code points", "internal/bpe.BenchmarkTiktoken/o200k/fuzz", "tiktoken", 1.5},
	{"cl100k, the mix", "internal/bpe.BenchmarkTiktoken/cl100k/mix", "tiktoken", 5},
	{"Llama 3.1, the mix", "internal/bpe.BenchmarkHuggingFace/llama3/mix", "hf_tokenizers", 15},
	{"Qwen 3, the mix", "internal/bpe.BenchmarkHuggingFace/qwen3/mix", "hf_tokenizers", 15},
	{"DeepSeek V3, the mix", "internal/bpe.BenchmarkHuggingFace/deepseek3/mix", "hf_tokenizers", 15},
	{"NFC of the mix", "internal/bpe.BenchmarkNFC/mix", "xtext", 2},
	{"analyzing 200,000 result rows in ten buckets", "analyze.BenchmarkAnalyze", "sorting_structs", 2},
	{"analyzing 200,000 result rows in ten buckets", "analyze.BenchmarkAnalyze", "duckdb", 0.33},
	// A piece of twice the length takes at most 2.3 times as long.
	{"one piece of 1 MB, letters", "internal/bpe.BenchmarkGiant/letters", "half_the_length", 0.87},
	{"one piece of 1 MB, Han", "internal/bpe.BenchmarkGiant/han", "half_the_length", 0.87},
	{"one piece of 1 MB, a rule of =", "internal/bpe.BenchmarkGiant/rule", "half_the_length", 0.87},
}
