"""Holds an aiperf export to AIPerf's own code: its row model, its synthesizer at several speedups, and the rule by
which its prompt generator cuts blocks. Usage: check_aiperf.py BLOCK_SIZE FILE..."""
import json
import sys

from aiperf.common import random_generator as rng
from aiperf.dataset.loader.models import MooncakeTrace
from aiperf.dataset.synthesis.models import SynthesisParams
from aiperf.dataset.synthesis.synthesizer import Synthesizer


def conflicts(rows, size):
    """Rows that the prompt generator refuses: too many ids for the length, or an id at two sizes."""
    overshoot, two_sizes, seen = 0, 0, {}
    for r in rows:
        ids, n = r.get("hash_ids") or [], r["input_length"]
        if ids and (len(ids) - 1) * size >= n:
            overshoot += 1
            continue
        for j, i in enumerate(ids):
            tokens = min(size, n - j * size)
            if seen.setdefault(i, tokens) != tokens:
                two_sizes += 1
    return overshoot, two_sizes


def main():
    size, bad = int(sys.argv[1]), 0
    rng.init(1)
    for path in sys.argv[2:]:
        rows = [json.loads(line) for line in open(path)]
        for r in rows:
            MooncakeTrace.model_validate(r)
        for speedup in (0.5, 1.0, 1.5, 2.0, 3.7):
            out = Synthesizer(SynthesisParams(speedup_ratio=speedup, block_size=size)).synthesize_traces([dict(r) for r in rows])
            over, two = conflicts(out, size)
            changed = sum(a["input_length"] != b["input_length"] for a, b in zip(rows, out))
            early = sum(a["timestamp"] > b["timestamp"] for a, b in zip(out, out[1:]))
            print(f"{path}: {len(out)} rows at speedup {speedup}: {over} overshoots, {two} ids at two sizes, {changed} lengths changed, {early} out of order")
            bad += over + two + changed + early + (len(out) != len(rows))
    sys.exit(bad > 0)


main()
