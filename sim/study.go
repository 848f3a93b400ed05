package sim

// Specs of the two engines on which the rules for verdicts and capacity were measured, with their loads; the
// proofs of these rules run on them in virtual time. Neither stands for real hardware.
//
//   - StudySlots: 32 slots, first come, first served; service lognormal with mean 8 s and CV 1, the first token
//     after 0.15 s + Exp(0.1 s) of it. Requests need two output tokens or more. It serves 4.00 requests/s.
//   - StudyBatch: continuous batching of at most 64 sequences; a step takes 12 ms + 0.3 ms per decoding sequence
//   - 0.06 ms per prompt token; 1,024 tokens of prompts per step, first come, first served; no limit by memory.
//     With prompts lognormal of mean 1,200 and CV 1.2 in 16…8,192, and answers lognormal of mean 220 and CV 1 in
//     2…4,000, it serves 5.6 requests/s.
const (
	StudySlots = "sim:queue:service=8s,slots=32,dist=lognormal,cv=1,prefill=150ms,prefill_exp=100ms"
	StudyBatch = "sim:" + DefaultPreset + ",a=12,b=0.06,c=0.3,d=0,e=0,kv_tokens=16777216,max_num_seqs=64,max_num_batched_tokens=1056"
)
