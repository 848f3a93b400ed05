"""Compares token ids with those of the tokenizers that models are served with.

Reads the frames of tools/tokens on stdin and tokenizes each document again:

    go run ./tools/tokens -encoding o200k | python tokenizer_oracle.py tiktoken:o200k_base
    go run ./tools/tokens -encoding FILE | python tokenizer_oracle.py hf:FILE
    go run ./tools/tokens -encoding FILE -special | python tokenizer_oracle.py hf+special:FILE     (or tiktoken+special:o200k_base)

FILE is a tokenizer.json; with hf: its added tokens are taken out, so that all text is text.

or checks a file of golden vectors:

    python tokenizer_oracle.py vectors internal/bpe/testdata/vectors.json

Prints documents, bytes and how many differ by kind, never their text. Exits with 1 when one differs.
"""
import array
import base64
import hashlib
import json
import sys


def encoder(name, offsets=False):
    """The function from a list of texts to the list of their ids; offsets as engines have them computed with it."""
    source, _, which = name.partition(":")
    if source in ("tiktoken", "tiktoken+special"):
        import tiktoken

        enc = tiktoken.get_encoding(which)
        if source == "tiktoken":
            return lambda texts: [enc.encode_ordinary(t) for t in texts]
        return lambda texts: [enc.encode(t, allowed_special="all") for t in texts]
    if source in ("hf", "hf+special"):
        import tokenizers

        with open(which, encoding="utf-8") as file:
            spec = json.load(file)
        if source == "hf":
            spec["added_tokens"], spec["post_processor"] = [], None
        tok = tokenizers.Tokenizer.from_str(json.dumps(spec))
        encode = tok.encode_batch if offsets else tok.encode_batch_fast
        return lambda texts: [e.ids for e in encode(texts, add_special_tokens=False)]
    sys.exit(f"no oracle {name}")


def frames(stream):
    while head := stream.read(1):
        kind = stream.read(head[0]).decode()
        doc = stream.read(int.from_bytes(stream.read(4), "little"))
        count = int.from_bytes(stream.read(4), "little")
        yield kind, doc, count, stream.read(8)


def batches(items, size):
    """Lists of items whose documents have about so many bytes together: one call of a library takes them all."""
    batch, total = [], 0
    for item in items:
        batch.append(item)
        total += len(item[1])
        if total >= size:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def vectors(path):
    """Each vector has a text in base64 and the ids of each encoding by its name without _base."""
    differ, count = 0, 0
    for v in json.load(open(path)):
        text = base64.b64decode(v.pop("text") or "").decode("utf-8", "replace")
        for name, ids in v.items():
            count += 1
            differ += encoder(f"tiktoken:{name}_base")([text])[0] != ids
    print(f"{path}: {count} lists of ids, {differ} differ")
    if differ or not count:
        sys.exit(1)


def main():
    if sys.argv[1] == "vectors":
        return vectors(sys.argv[2])
    encode = encoder(sys.argv[1])
    source, _, which = sys.argv[1].partition(":")
    label = f"{source}:{which.removesuffix('/tokenizer.json').rpartition('/')[2]}"
    rows = {}
    for batch in batches(frames(sys.stdin.buffer), 1 << 20):
        for (kind, doc, count, digest), theirs in zip(batch, encode([f[1].decode("utf-8", "replace") for f in batch])):
            ids = array.array("I", theirs)
            row = rows.setdefault(kind, [0, 0, 0, 0])
            row[0] += 1
            row[1] += len(doc)
            row[2] += len(ids)
            row[3] += len(ids) != count or hashlib.sha256(ids.tobytes()).digest()[:8] != digest
    total = [sum(column) for column in zip(*rows.values())] or [0, 0, 0, 0]
    for kind, (docs, size, ids, differ) in [*rows.items(), ("all", total)]:
        print(f"{label:24} {kind:10} {docs:8} documents {size / 1e6:9.2f} MB {size / max(ids, 1):6.2f} bytes/token {differ:6} differ")
    if total[3] or not total[0]:
        sys.exit(f"{total[3]} of {total[0]} documents differ")


if __name__ == "__main__":
    main()
