"""Reads a vllm export with vLLM's own reader (benchmarks/datasets of its wheel; the rest of vLLM, which needs a GPU
build, is stubbed). Usage: check_vllm.py WHEEL_FOLDER TOKENIZER_FOLDER BLOCK_SIZE FILE..."""
import json
import sys

import vllm_stub

folder, tokenizer, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
vllm_stub.install(folder)
from vllm.benchmarks.datasets.datasets import TimedTrace  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

tok = AutoTokenizer.from_pretrained(tokenizer)
bad = 0
for path in sys.argv[4:]:
    rows = [json.loads(line) for line in open(path)]
    trace = TimedTrace(dataset_path=path, random_seed=0, timed_trace_chunk_hash_size=size, timed_trace_label_timestamp="timestamp",
                       timed_trace_label_input_length="input_length", timed_trace_label_output_length="output_length",
                       timed_trace_label_hash_ids="hash_ids")
    got = trace.sample(tok, len(rows))
    lengths = sum(g.prompt_len != r["input_length"] or g.expected_output_len != r["output_length"] for g, r in zip(got, rows))
    stamps = sum(abs(g.timestamp - r["timestamp"]) > 1e-9 for g, r in zip(got, rows)) if hasattr(got[0], "timestamp") else -1
    print(f"{path}: {len(got)} of {len(rows)} requests, {lengths} with other lengths, {stamps} with other stamps")
    bad += lengths + (stamps != 0) + (len(got) != len(rows))
sys.exit(bad > 0)
