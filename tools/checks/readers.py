"""Reads one Parquet file per table with DuckDB, pyarrow and Polars: names, types, null against zero, lists, UTC.

usage: readers.py FIXTURES_DIR [FILE...]
FIXTURES_DIR is what `go run ./tools/fixtures DIR` wrote; FILEs are real outputs that must at least open and count alike.
"""
import datetime
import glob
import json
import os
import sys

import duckdb
import polars as pl
import pyarrow.parquet as pq

NOON = datetime.datetime(2026, 11, 28, 12, 0, 0, 123456, tzinfo=datetime.timezone.utc)
DUCK = {"int64": "BIGINT", "int32": "INTEGER", "float64": "DOUBLE", "bool": "BOOLEAN", "string": "VARCHAR",
        "timestamp": "TIMESTAMP WITH TIME ZONE", "map": "MAP(VARCHAR, VARCHAR)", "bin": "STRUCT(upper_us BIGINT, n BIGINT)"}
ARROW = {"int64": "int64", "int32": "int32", "float64": "double", "bool": "bool", "string": "string",
         "timestamp": "timestamp[us, tz=UTC]", "bin": "struct<upper_us: int64 not null, n: int64 not null>"}
POLARS = {"int64": pl.Int64, "int32": pl.Int32, "float64": pl.Float64, "bool": pl.Boolean, "string": pl.String,
          "timestamp": pl.Datetime("us", "UTC"), "bin": pl.Struct({"upper_us": pl.Int64, "n": pl.Int64})}
ZERO = {"int64": 0, "int32": 0, "float64": 0.0, "bool": False, "string": "", "bin": {"upper_us": 0, "n": 0}}
VALUE = {"int64": 7, "int32": 7, "float64": 1.5, "bool": True, "string": "é7", "timestamp": NOON, "bin": {"upper_us": 7, "n": 7}}
checks = faults = 0


def expect(what, got, want):
    global checks, faults
    checks += 1
    if got != want:
        faults += 1
        print(f"FAIL {what}: got {got!r}, want {want!r}")


def inner(kind):
    return kind[5:-1] if kind.startswith("list<") else None


def want_values(column):
    """The values of rows 0 (null), 1 (zero) and 2 (value)."""
    kind, nullable = column["type"], column["nullable"]
    if kind == "timestamp":
        return [NOON, NOON, NOON]
    if kind == "map":
        return [{}, {}, {"gpu": "none"}]
    if inner(kind):
        zero = ZERO[inner(kind)]
        return [None if nullable else [], [], [zero, zero, VALUE[inner(kind)]]]
    return [None if nullable else ZERO[kind], ZERO[kind], VALUE[kind]]


def plain(value):
    """The same value whatever the engine calls it."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, list) and value and isinstance(value[0], dict) and set(value[0]) == {"key", "value"}:
        return {v["key"]: v["value"] for v in value}
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc)
    return value


def pairs(kind, values):
    return [plain(v) or {} if kind == "map" else plain(v) for v in values]


def check_table(name, path, columns, con):
    names = [c["name"] for c in columns]
    arrow = pq.read_table(path)
    duck_types = {d[0]: str(d[1]) for d in con.execute(f"DESCRIBE SELECT * FROM read_parquet('{path}')").fetchall()}
    duck_rows = con.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()
    frame = pl.read_parquet(path)
    expect(f"{name} pyarrow names", arrow.column_names, names)
    expect(f"{name} duckdb names", list(duck_types), names)
    expect(f"{name} polars names", frame.columns, names)
    for i, column in enumerate(columns):
        kind, where = column["type"], f"{name}.{column['name']}"
        element = inner(kind)
        if element:
            expect(f"{where} duckdb type", duck_types[column["name"]], DUCK[element] + "[]")
            field = arrow.schema.field(column["name"]).type
            expect(f"{where} pyarrow list", (str(field.value_type), field.value_field.nullable), (ARROW[element], False))
            expect(f"{where} polars type", frame.schema[column["name"]], pl.List(POLARS[element]))
        else:
            expect(f"{where} duckdb type", duck_types[column["name"]], DUCK[kind])
            if kind != "map":
                expect(f"{where} pyarrow type", str(arrow.schema.field(column["name"]).type), ARROW[kind])
                expect(f"{where} polars type", frame.schema[column["name"]], POLARS[kind])
        expect(f"{where} nullable", arrow.schema.field(column["name"]).nullable, column["nullable"])
        want = want_values(column)
        expect(f"{where} pyarrow values", pairs(kind, arrow[column["name"]].to_pylist()), want)
        expect(f"{where} duckdb values", pairs(kind, [r[i] for r in duck_rows]), want)
        expect(f"{where} polars values", pairs(kind, frame[column["name"]].to_list()), want)


def check_real(path, con):
    """A real output: three engines count alike, and every list column unnests to as many rows as it says."""
    table = pq.read_table(path)
    n = table.num_rows
    expect(f"{path} duckdb count", con.execute(f"SELECT count(*) FROM read_parquet('{path}')").fetchone()[0], n)
    expect(f"{path} polars count", pl.read_parquet(path).height, n)
    meta = pq.read_metadata(path).metadata or {}
    for key in ("schema", "schema_version", "tool_version", "definition"):
        expect(f"{path} footer {key}", bool(meta.get(b"tailgate." + key.encode())), True)
    for field in table.schema:
        if str(field.type).startswith("list<"):
            q = f"SELECT coalesce(sum(len({field.name})), 0), (SELECT count(*) FROM (SELECT unnest({field.name}) FROM t)) FROM t"
            con.execute(f"CREATE OR REPLACE VIEW t AS SELECT * FROM read_parquet('{path}')")
            total, unnested = con.execute(q).fetchone()
            expect(f"{path} {field.name} unnested", unnested, total)


def main():
    fixtures, real = sys.argv[1], sys.argv[2:]
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    with open(os.path.join(fixtures, "columns.json")) as f:
        tables = json.load(f)
    for name, columns in tables.items():
        check_table(name, os.path.join(fixtures, name + ".parquet"), columns, con)
    for pattern in real:
        paths = glob.glob(pattern, recursive=True)
        expect(f"{pattern} has files", bool(paths), True)
        for path in paths:
            check_real(path, con)
    print(f"readers: {len(tables)} tables, {checks} checks, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
