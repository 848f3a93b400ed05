"""Times a tokenizer in step with a caller.

Reads the frames of documents on stdin (u32le length, bytes; length 0xFFFFFFFF ends them). Then for each line it
makes one pass on one thread and prints a line: tokens, and the processor seconds of each document.

    python tokenizer_speed.py tiktoken:o200k_base
"""
import sys
import time

from tokenizer_oracle import encoder


def main():
    encode, stream, docs = encoder(sys.argv[1], offsets=True), sys.stdin.buffer, []
    while (size := int.from_bytes(stream.read(4), "little")) != 0xFFFFFFFF:
        docs.append(stream.read(size).decode("utf-8", "replace"))
    while stream.readline():
        tokens, times = 0, []
        for doc in docs:
            began = time.thread_time_ns()
            tokens += len(encode([doc])[0])
            times.append(time.thread_time_ns() - began)
        print(tokens, *(f"{t / 1e9:.9f}" for t in times), flush=True)


if __name__ == "__main__":
    main()
