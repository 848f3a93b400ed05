"""Runs every question of docs/query.md in DuckDB, Spark and Polars and holds their answers to each other, row by row.

usage: query.py docs/query.md DIR
DIR is what query_week made. Spark needs Java; it runs inside this process.
"""
import datetime
import decimal
import math
import os
import re
import sys
import time

BLOCK = re.compile(r"^```(sql|python) ([a-z ]+)\n(.*?)^```$", re.M | re.S)
ENGINES = ("duckdb", "spark", "polars")


def snippets(text):
    """The set-up of each engine, and each question with one snippet for each engine."""
    setup, questions = {}, []
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        title, blocks = section.split("\n", 1)[0], {}
        for _, words, body in BLOCK.findall(section):
            words = words.split()
            for engine in set(words) & set(ENGINES):
                if engine in blocks or "setup" in words and engine in setup:
                    raise SystemExit(f"{title}: two snippets for {engine}")
                (setup if "setup" in words else blocks)[engine] = body
        if blocks:
            if set(blocks) != set(ENGINES):
                raise SystemExit(f"{title}: only {sorted(blocks)}")
            questions.append((title, blocks))
    return setup, questions


def plain(value):
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc) if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
    return float(value) if isinstance(value, decimal.Decimal) else value


def same(a, b):
    a, b = plain(a), plain(b)
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and (a == b or math.isclose(a, b, rel_tol=1e-12))
    return a == b and type(a) is type(b)


def difference(names, want, got):
    """What differs between two answers, in one line; "" = nothing."""
    if len(want) != len(got):
        return f"{len(got)} rows, not {len(want)}"
    for i, (a, b) in enumerate(zip(want, got)):
        for name, x, y in zip(names, a, b):
            if len(a) != len(b) or not same(x, y):
                return f"row {i}, {name}: {y!r}, not {x!r}"
    return ""


class Duck:
    def __init__(self, setup):
        import duckdb
        self.con = duckdb.connect()
        self.con.execute(setup)

    def ask(self, sql):
        got = self.con.execute(sql)
        return [d[0] for d in got.description], got.fetchall()


class Spark:
    def __init__(self, setup):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ["TZ"] = "UTC"  # PySpark gives times in the zone of the process
        time.tzset()
        from pyspark.sql import SparkSession
        options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1",
                   "spark.driver.bindAddress": "127.0.0.1", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
        builder = SparkSession.builder.master("local[2]").appName("query")
        for key, value in options.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        exec(setup, {"spark": self.spark})

    def ask(self, sql):
        got = self.spark.sql(sql)
        return got.columns, [tuple(row) for row in got.collect()]


class Polars:
    def __init__(self, setup):
        self.names = {}
        exec(setup, self.names)

    def ask(self, code):
        names = dict(self.names)
        exec(code, names)
        frame = names["answer"].collect()
        return frame.columns, frame.rows()


def main():
    with open(sys.argv[1]) as f:
        setup, questions = snippets(f.read())
    os.chdir(sys.argv[2])
    engines, faults = {}, 0
    for name, kind in zip(ENGINES, (Duck, Spark, Polars)):
        began = time.monotonic()
        engines[name] = kind(setup[name])
        print(f"{name}: ready after {time.monotonic() - began:.1f} s")
    if len(questions) != 12:
        raise SystemExit(f"{len(questions)} questions, not 12")
    for title, blocks in questions:
        answers = {name: engines[name].ask(blocks[name]) for name in ENGINES}
        names, want = answers["duckdb"]
        faults += not want
        said = "" if want else "  NO ROWS"
        for name in ENGINES[1:]:
            got = answers[name]
            wrong = f"columns {got[0]}, not {names}" if list(got[0]) != list(names) else difference(names, want, got[1])
            faults += bool(wrong)
            said += f"  FAIL {name}: {wrong}" if wrong else ""
        print(f"{title}: {len(want)} rows{said}")
    print(f"query: {len(questions)} questions, 3 engines, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
