"""Compares token ids with those of the tokenizers that models are served with.

Reads the frames of tools/tokens on stdin and tokenizes each document again:

    go run ./tools/tokens -encoding o200k | python tokenizer_oracle.py tiktoken:o200k_base

Prints documents, bytes and how many differ by kind, never their text. Exits with 1 when one differs.
"""
import array
import hashlib
import os
import subprocess
import sys
import tempfile


def encoder(name):
    source, _, which = name.partition(":")
    if source == "tiktoken":
        import tiktoken

        return tiktoken.get_encoding(which).encode_ordinary
    sys.exit(f"no oracle {name}")


def frames(stream):
    while head := stream.read(1):
        kind = stream.read(head[0]).decode()
        doc = stream.read(int.from_bytes(stream.read(4), "little"))
        count = int.from_bytes(stream.read(4), "little")
        yield kind, doc, count, stream.read(8)


def main():
    encode = encoder(sys.argv[1])
    rows = {}
    for kind, doc, count, digest in frames(sys.stdin.buffer):
        ids = array.array("I", encode(doc.decode("utf-8", "replace")))
        row = rows.setdefault(kind, [0, 0, 0, 0])
        row[0] += 1
        row[1] += len(doc)
        row[2] += len(ids)
        row[3] += len(ids) != count or hashlib.sha256(ids.tobytes()).digest()[:8] != digest
    total = [sum(column) for column in zip(*rows.values())] or [0, 0, 0, 0]
    for kind, (docs, size, ids, differ) in [*rows.items(), ("all", total)]:
        print(f"{sys.argv[1]:24} {kind:10} {docs:8} documents {size / 1e6:9.2f} MB {size / max(ids, 1):6.2f} bytes/token {differ:6} differ")
    if total[3] or not total[0]:
        sys.exit(f"{total[3]} of {total[0]} documents differ")


if __name__ == "__main__":
    main()
