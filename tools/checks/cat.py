"""Holds `tailgate cat` to pyarrow and DuckDB: what each of its formats says of a file is what they read from the file itself.

usage: cat.py TAILGATE FILE...
FILEs are patterns of Parquet files. A foreign file with types that tailgate never writes is made and checked beside.
"""
import base64
import datetime
import decimal
import glob
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

checks = faults = 0


def expect(what, got, want):
    global checks, faults
    checks += 1
    if got != want:
        faults += 1
        print(f"FAIL {what}: got {str(got)[:300]!r}, want {str(want)[:300]!r}")


def cat(binary, path, form):
    return subprocess.run([binary, "cat", path, "--format", form], check=True, stdout=subprocess.PIPE).stdout


def text(value, kind):
    """A value that is not null as cat writes it: JSON for what is nested, plain otherwise."""
    if pa.types.is_timestamp(kind):
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        moment = value.astimezone(datetime.timezone.utc) if kind.tz else value
        fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + ("Z" if kind.tz else "")
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode()
    return str(value)


def plain(value, kind):
    """A value as json.loads gives it back of cat's JSON."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {k: plain(v, kind.item_type) for k, v in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [plain(v, kind.value_type) for v in value]
    if pa.types.is_struct(kind):
        return {f.name: plain(value[f.name], f.type) for f in kind}
    if pa.types.is_dictionary(kind):
        return plain(value, kind.value_type)
    if pa.types.is_floating(kind) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bool, int, float, str)):
        return value
    return text(value, kind)


def rounded(value, kind):
    """A decimal of 32 bits, which Python reads as one of 64."""
    if not pa.types.is_float32(kind) or not isinstance(value, (int, float)):
        return value
    return struct.unpack("f", struct.pack("f", value))[0]


def nested(kind):
    return pa.types.is_nested(kind)


def check(binary, path):
    want = pq.read_table(path)
    stream = pa.ipc.open_stream(cat(binary, path, "arrow")).read_all()
    file = pa.ipc.open_file(pa.BufferReader(cat(binary, path, "arrow-file"))).read_all()
    for form, got in (("arrow", stream), ("arrow-file", file)):
        for field in want.schema:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            same = got.schema.field(field.name).type.equals(kind)  # names inside of maps are left out
            expect(f"{path} {form} {field.name} type", str(got.schema.field(field.name).type), str(kind) if not same else str(got.schema.field(field.name).type))
            expect(f"{path} {form} {field.name}", got[field.name].to_pylist().__repr__(), want[field.name].to_pylist().__repr__())
        expect(f"{path} {form} names", got.column_names, want.column_names)
        kept = {k: v for k, v in (want.schema.metadata or {}).items() if k not in (b"ARROW:schema", b"pandas")}
        expect(f"{path} {form} footer", {k: v for k, v in (got.schema.metadata or {}).items() if k != b"pandas"}, kept)

    lines = [json.loads(line) for line in cat(binary, path, "jsonl").decode().splitlines()]
    expect(f"{path} jsonl rows", len(lines), want.num_rows)
    for field in want.schema:
        got = [rounded(row[field.name], field.type) for row in lines]
        expect(f"{path} jsonl {field.name}", got, [plain(v, field.type) for v in want[field.name].to_pylist()])

    with tempfile.NamedTemporaryFile(suffix=".csv") as f:
        f.write(cat(binary, path, "csv"))
        f.flush()
        con = duckdb.connect()
        got = con.execute(f"SELECT * FROM read_csv('{f.name}', header = true, all_varchar = true, nullstr = '', "
                          "allow_quoted_nulls = false, quote = '\"', escape = '\"', delim = ',', null_padding = false)")
        names, rows = [d[0] for d in got.description], got.fetchall()
    expect(f"{path} csv names", names, want.column_names)
    expect(f"{path} csv rows", len(rows), want.num_rows)
    for i, field in enumerate(want.schema):
        check_csv(f"{path} csv {field.name}", [row[i] for row in rows], want[field.name].to_pylist(), field.type)


def check_csv(what, got, want, kind):
    expect(what + " nulls", [v is None for v in got], [v is None for v in want])
    got, want = [v for v in got if v is not None], [v for v in want if v is not None]
    if nested(kind):
        expect(what, [json.loads(v) for v in got], [plain(v, kind) for v in want])
    elif pa.types.is_floating(kind):
        expect(what, [rounded(float(v), kind).hex() for v in got], [float(v).hex() for v in want])
    elif pa.types.is_boolean(kind):
        expect(what, got, [str(v).lower() for v in want])
    else:
        expect(what, got, [text(v, kind.value_type if pa.types.is_dictionary(kind) else kind) for v in want])


def foreign(path):
    noon = datetime.datetime(2026, 11, 28, 12, 0, 0, 1000, tzinfo=datetime.timezone.utc)
    columns = {
        "u64": pa.array([None, 0, 2**64 - 1], pa.uint64()),
        "i64": pa.array([-2**63, None, 2**63 - 1], pa.int64()),
        "f32": pa.array([0.10000000149011612, None, -0.0], pa.float32()),
        "f64": pa.array([math.inf, 5e-324, None]),
        "text": pa.array(["", None, "a\"b,c\nd \u202e\x1b[0m é"]),
        "large": pa.array(["x", None, ""], pa.large_string()),
        "kind": pa.array(["a", None, "b"]).dictionary_encode(),
        "bytes": pa.array([b"", None, b"\x00\xff"]),
        "dec": pa.array([decimal.Decimal("-12345678901234567890.0001"), None, decimal.Decimal("0.0000")], pa.decimal128(30, 4)),
        "day": pa.array([datetime.date(1969, 12, 31), None, datetime.date(2026, 2, 28)]),
        "zoned": pa.array([noon, None, noon], pa.timestamp("ms", "UTC")),
        "local": pa.array([noon.replace(tzinfo=None), None, datetime.datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp("us")),
        "list": pa.array([[], None, [1, None, -3]], pa.list_(pa.int64())),
        "lists": pa.array([[[]], None, [[1], None, []]], pa.list_(pa.list_(pa.int32()))),
        "struct": pa.array([{"a": None, "b": "x"}, None, {"a": 1, "b": None}]),
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
    table = pa.table(columns)
    pq.write_table(pa.concat_tables([table] * 2000), path, row_group_size=2500)


# A process counts the memory of the one that started it as its own: this one is small.
MEASURE = "import os, subprocess, sys; c = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL); _, s, u = os.wait4(c.pid, 0); print(s, u.ru_maxrss)"


def peak(binary, path):
    """The most memory, in MB, that printing a file took."""
    out = subprocess.run([sys.executable, "-c", MEASURE, binary, "cat", path, "--format", "jsonl"], check=True, stdout=subprocess.PIPE).stdout
    status, kilobytes = map(int, out.split())
    expect(f"{path} status", status, 0)
    return kilobytes / 1024


def check_memory(binary, dir):
    """A file of twenty times the rows takes no more memory."""
    peaks = []
    for n in (20_000, 400_000):
        ids = pa.ListArray.from_arrays(pa.array(range(0, 20 * n + 1, 20), pa.int32()), pa.array(range(20 * n)))
        path = os.path.join(dir, f"rows-{n}.parquet")
        pq.write_table(pa.table({"ids": ids, "text": pa.array([f"text {i}" for i in range(n)])}), path, compression="zstd", row_group_size=200_000)
        peaks.append(peak(binary, path))
    expect("memory grows with the rows", peaks[1] > 1.3 * peaks[0] + 40, False)
    print("cat: peak memory of 20,000 and 400,000 rows: %.0f and %.0f MB" % tuple(peaks))


def main():
    binary, patterns = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, "foreign.parquet")
        foreign(path)
        check(binary, path)
        check_memory(binary, dir)
        files = 1
        for pattern in patterns:
            found = glob.glob(pattern, recursive=True)
            expect(f"{pattern} has files", bool(found), True)
            for path in found:
                check(binary, path)
                files += 1
    print(f"cat: {files} files, {checks} checks, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
