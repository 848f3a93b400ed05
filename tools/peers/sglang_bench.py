"""SGLang's Rust client, a shared object of its wheel, without the rest of SGLang. Usage: sglang_bench.py WHEEL_FOLDER ARGUMENTS…"""
import importlib.util
import pathlib
import sys

path = next(pathlib.Path(sys.argv[1], "sglang/srt/rust_extensions").glob("_bench*.so"))
spec = importlib.util.spec_from_file_location("_bench", path)
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
bench.run_argv(["sglang-bench"] + sys.argv[2:])
