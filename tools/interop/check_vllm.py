"""Reads a vllm export with vLLM's own reader (benchmarks/datasets of its wheel; the rest of vLLM, which needs a GPU
build, is stubbed). Usage: check_vllm.py WHEEL_FOLDER TOKENIZER_FOLDER BLOCK_SIZE FILE..."""
import importlib.abc
import importlib.machinery
import json
import sys
import types

folder, tokenizer, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.path.insert(0, folder)


class Anything:
    def __init__(self, *a, **k):
        pass

    def __call__(self, *a, **k):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __class_getitem__(cls, item):
        return cls


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Anything,), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for the modules of vLLM and of its datasets that are not there."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ("vllm", "datasets", "PIL", "torch", "cv2", "librosa", "soundfile", "pybase64", "av"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        m = Stub(spec.name)
        m.__path__ = [folder + "/" + spec.name.replace(".", "/")] if spec.name.startswith("vllm") else []
        return m

    def exec_module(self, module):
        pass


sys.meta_path.append(Finder())
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
