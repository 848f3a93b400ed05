"""The yardstick: what a data team would write in Python for the way from gateway logs to Parquet.

Each file is one process: orjson, tiktoken (o200k), a chain of HMAC-SHA256 over blocks of 16 tokens, and one Parquet
file with zstd. Usage: pipeline.py OUT_DIR FILE…; prints rows and tokens.
"""
import array
import hmac
import multiprocessing
import os
import sys

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import tiktoken

KEY = bytes(range(32))
BLOCK = 16 * 4

SCHEMA = pa.schema(
    [
        ("request_id", pa.string()),
        ("session", pa.string()),
        ("tenant", pa.string()),
        ("model", pa.string()),
        ("arrived_us", pa.int64()),
        ("duration_us", pa.int64()),
        ("ttft_us", pa.int64()),
        ("stream", pa.bool_()),
        ("input_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("hash_ids", pa.list_(pa.int64())),
    ]
)


def render(messages):
    parts = []
    for m in messages:
        parts += ("<|im_start|>", m["role"], "\n", m["content"], "<|im_end|>\n")
    parts.append("<|im_start|>assistant\n")
    return "".join(parts)


def blocks(model, tokens):
    data = array.array("I", tokens).tobytes()
    state = hmac.digest(KEY, model.encode(), "sha256")
    ids = []
    for at in range(0, len(data), BLOCK):
        piece = data[at : at + BLOCK]
        state = hmac.digest(KEY, state + (b"\0" if len(piece) == BLOCK else b"\1") + piece, "sha256")
        ids.append(int.from_bytes(state[:8], "big") >> 1)
    return ids


def one(job):
    path, out = job
    encode = tiktoken.get_encoding("o200k_base").encode_ordinary
    columns = [[] for _ in SCHEMA]
    rows = tokens = 0
    with open(path, "rb") as lines, pq.ParquetWriter(out, SCHEMA, compression="zstd") as writer:

        def flush():
            writer.write_table(pa.table(columns, schema=SCHEMA))
            for c in columns:
                c.clear()

        for line in lines:
            r = orjson.loads(line)
            ids = encode(render(r["messages"]))
            tokens += len(ids)
            start = r["startTime"]
            row = (
                r["litellm_call_id"],
                r["trace_id"],
                r["metadata"]["user_api_key_team_id"],
                r["model_group"],
                round(start * 1e6),
                round((r["endTime"] - start) * 1e6),
                round((r["completionStartTime"] - start) * 1e6),
                r["stream"],
                r["prompt_tokens"],
                r["completion_tokens"],
                blocks(r["model"], ids),
            )
            for column, value in zip(columns, row):
                column.append(value)
            rows += 1
            if len(columns[0]) == 20_000:
                flush()
        flush()
    with open(out, "rb") as written:
        os.fsync(written.fileno())
    return rows, tokens


def main():
    out, files = sys.argv[1], sys.argv[2:]
    jobs = [(f, os.path.join(out, f"{i}.parquet")) for i, f in enumerate(files)]
    if len(jobs) == 1:
        done = [one(jobs[0])]
    else:
        with multiprocessing.Pool(len(jobs)) as pool:
            done = pool.map(one, jobs)
    print(sum(d[0] for d in done), sum(d[1] for d in done))


if __name__ == "__main__":
    main()
