"""Readers of four engines count the same rows before, during and after rebuilds of a day, in a folder or a bucket.

usage: rebuild.py BIN_DIR WORK_DIR [BUCKET]      BIN_DIR holds tailgate and rowcount, the Go reader
       rebuild.py --reader ENGINE LAKE           one reader (used by the above)

With BUCKET (a name) the lake lies in a bucket that is made on the server of TAILGATE_S3_ENDPOINT, with credentials from
the AWS environment. Each reader loops over the glob day=*/*.parquet until its stdin ends and prints a line per read.
Every read must give the same rows and sum. In a bucket a reader may be told, loudly, that the object was replaced between
two of its requests: then it reads again, and that read must be right. At the end the check tests itself: a day that is
written in place, or removed and put back, must be caught by every engine.
"""
import json
import os
import subprocess
import sys
import threading

ENGINES = ["duckdb", "pyarrow", "polars", "go"]
REBUILDS = 8
TRIES = 3  # reads of an object that is being replaced
PATIENCE = 60  # seconds for a reader to answer


def storage():
    return {"key": os.environ["AWS_ACCESS_KEY_ID"], "secret": os.environ["AWS_SECRET_ACCESS_KEY"],
            "url": os.environ["TAILGATE_S3_ENDPOINT"]}


def s3fs_system():
    import s3fs
    s = storage()
    return s3fs.S3FileSystem(key=s["key"], secret=s["secret"], endpoint_url=s["url"], use_listings_cache=False,
                             skip_instance_cache=True, config_kwargs={"s3": {"addressing_style": "path"}})


def duckdb_reader(lake):
    import duckdb

    def read():
        con = duckdb.connect()
        if lake.startswith("s3://"):
            con.register_filesystem(s3fs_system())
        sql = f"SELECT count(*), sum(input_tokens) FROM read_parquet('{lake}/day=*/*.parquet')"
        return con.execute(sql).fetchone()
    return read


def pyarrow_reader(lake):
    import glob

    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    def read():
        if lake.startswith("s3://"):
            s = storage()
            system = fs.S3FileSystem(access_key=s["key"], secret_key=s["secret"], endpoint_override=s["url"])
            root = lake.removeprefix("s3://")
            days = [d.path for d in system.get_file_info(fs.FileSelector(root)) if d.base_name.startswith("day=")]
            paths = [f.path for d in days for f in system.get_file_info(fs.FileSelector(d)) if f.path.endswith(".parquet")]
            table = ds.dataset(paths, filesystem=system, format="parquet").to_table(columns=["input_tokens"])
        else:
            paths = glob.glob(f"{lake}/day=*/*.parquet")
            table = ds.dataset(paths, format="parquet").to_table(columns=["input_tokens"])
        return table.num_rows, pc.sum(table["input_tokens"]).as_py()
    return read


def polars_reader(lake):
    import polars as pl

    def read():
        options = None
        if lake.startswith("s3://"):
            s = storage()
            options = {"aws_access_key_id": s["key"], "aws_secret_access_key": s["secret"], "aws_endpoint_url": s["url"],
                       "aws_region": "us-east-1", "aws_allow_http": "true"}
        frame = pl.scan_parquet(f"{lake}/day=*/*.parquet", storage_options=options)
        return frame.select(pl.len(), pl.col("input_tokens").cast(pl.Int64).sum().alias("sum")).collect().row(0)
    return read


def reader(engine, lake):
    read = {"duckdb": duckdb_reader, "pyarrow": pyarrow_reader, "polars": polars_reader}[engine](lake)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while True:
        try:
            rows, tokens = read()
            answer = {"rows": rows, "tokens": tokens}
        except Exception as e:  # whatever an engine says of a file that it cannot read
            answer = {"error": f"{type(e).__name__}: {e}".replace("\n", " ")[:300]}
        print(json.dumps(answer), flush=True)
        if ended.is_set():
            return 0


class Reader:
    """A reader process and what it has answered."""

    def __init__(self, engine, lake, bins):
        command = [os.path.join(bins, "rowcount"), lake]
        if engine != "go":
            command = [sys.executable, os.path.abspath(__file__), "--reader", engine, lake]
        self.engine, self.answers, self.news = engine, [], threading.Condition()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def follow(self):
        for line in self.process.stdout:
            with self.news:
                self.answers.append(json.loads(line))
                self.news.notify_all()

    def more(self, n):
        """Waits for n more answers: the last of them began after this call when n > 1."""
        with self.news:
            want = len(self.answers) + n
            if not self.news.wait_for(lambda: len(self.answers) >= want, PATIENCE):
                raise SystemExit(f"rebuild: {self.engine} does not answer")

    def stop(self):
        self.process.stdin.close()
        self.thread.join()
        if self.process.wait() != 0:
            raise SystemExit(f"rebuild: the {self.engine} reader failed")


def faults(reader, want, bucket):
    """What is wrong with the answers, and how often a read was asked again."""
    wrong, again, row = [], 0, 0
    for a in reader.answers:
        if a.get("error") and bucket and row < TRIES - 1:
            again, row = again + 1, row + 1
            continue
        row = 0
        if a.get("error") or (a["rows"], a["tokens"]) != want:
            wrong.append(a)
    return wrong, again


def run(bins, *args):
    done = subprocess.run([os.path.join(bins, "tailgate"), *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"rebuild: tailgate {args[0]}: {done.stderr.strip()}")
    return done.stdout


def publish(bins, lake, i):
    """Builds the day with other bytes each time: other labels are suppressed, rows are never dropped."""
    return json.loads(run(bins, "publish", lake, "--day", "2026-11-28", "--k", str(1 + i % 5), "--min-requests", "1", "--json"))


def watched(bins, lake, act):
    """Runs act while all engines read, and returns the readers when they have seen its end."""
    readers = [Reader(e, lake, bins) for e in ENGINES]
    try:
        for r in readers:
            r.more(2)
        act(readers)
        for r in readers:
            r.more(2)
    finally:
        for r in readers:
            r.stop()
    return readers


def rebuilds(bins, lake):
    def act(readers):
        for i in range(REBUILDS):
            publish(bins, lake, i + 1)
            for r in readers:
                r.more(1)
    return act


def in_place(lake):
    """The control: the day is written where it stands."""
    path = f"{lake}/day=2026-11-28/requests.parquet"

    def act(readers):
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "r+b") as f:
            f.truncate(len(data) // 2)
            for r in readers:
                r.more(2)
            f.seek(0)
            f.write(data)
    return act


def put_back(lake):
    """The control of a bucket: the day is removed and put back."""
    def act(readers):
        system, path = s3fs_system(), lake.removeprefix("s3://") + "/day=2026-11-28/requests.parquet"
        data = system.cat_file(path)
        system.rm_file(path)
        for r in readers:
            r.more(2 * TRIES)
        system.pipe_file(path, data)
    return act


def main():
    if sys.argv[1] == "--reader":
        return reader(*sys.argv[2:4])
    bins, work, bucket = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""
    logs, keys, lake = f"{work}/logs", f"{work}/keys", f"{work}/lake"
    if bucket:
        lake = f"s3://{bucket}/lake"
        s3fs_system().mkdir(bucket)
    run(bins, "sample", "-o", logs, "--duration", "20m", "--rate", "5/s", "--start", "2026-11-28T18:00:00Z")
    run(bins, "keys", "init", "--keys", keys)
    run(bins, "ingest", f"{logs}/litellm.jsonl", "--format", "litellm", "--out", lake, "--keys", keys)
    published = publish(bins, lake, 0)["rows"]
    want = None
    failed = False
    for r in watched(bins, lake, rebuilds(bins, lake)):
        first = next(a for a in r.answers if not a.get("error"))
        want = want or (published, first["tokens"])
        wrong, again = faults(r, want, bucket)
        note = f", {again} told that it was replaced" if again else ""
        print(f"rebuild: {r.engine}: {len(r.answers)} reads over {REBUILDS} rebuilds{note}, {len(wrong)} wrong")
        for a in wrong[:3]:
            print(f"  {a}, want {want}")
        failed = failed or bool(wrong)
    control = put_back(lake) if bucket else in_place(lake)
    for r in watched(bins, lake, control):
        if not faults(r, want, bucket)[0]:
            print(f"rebuild: self-test: {r.engine} did not notice a day that was not replaced whole")
            failed = True
    print(f"rebuild: {want[0]} rows, {'FAILED' if failed else 'every count equal; the self-test was caught by all engines'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
