"""vLLM's own `bench serve`, from the benchmark modules of its wheel; the rest of vLLM is stubbed, which makes its start
faster than it is. Usage: vllm_bench.py WHEEL_FOLDER ARGUMENTS…"""
import argparse
import logging
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
import vllm_stub  # noqa: E402


class Parser(argparse.ArgumentParser):
    """argparse without the keywords that vLLM's own parser adds to it."""

    def __init__(self, *a, **k):
        k.pop("add_json_tip", None)
        super().__init__(*a, **k)

    def add_argument(self, *a, **k):
        k.pop("deprecated", None)
        return super().add_argument(*a, **k)


def get_tokenizer(name, *a, **k):
    from transformers import AutoTokenizer
    return AutoTokenizer.from_pretrained(name)


vllm_stub.install(sys.argv[1], {
    "vllm.tokenizers": {"TokenizerLike": object, "get_tokenizer": get_tokenizer},
    "vllm.utils.argparse_utils": {"FlexibleArgumentParser": Parser},
    "vllm.utils.gc_utils": {"freeze_gc_heap": lambda: None},
    "vllm.utils.network_utils": {"join_host_port": lambda host, port: f"{host}:{port}"},
    "vllm.logger": {"init_logger": logging.getLogger},
    "vllm.utils.mistral": {"is_mistral_tokenizer": lambda t: False},
})
from vllm.benchmarks import serve  # noqa: E402

parser = Parser()
serve.add_cli_args(parser)
serve.main(parser.parse_args(sys.argv[2:]))
