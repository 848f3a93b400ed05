"""Times a tokenizer in step with a caller: reads the frames of documents on stdin (u32le length, bytes; length
0xFFFFFFFF ends them), then for each line makes one pass on one thread and prints
its processor seconds and its tokens.

    python tokenizer_speed.py tiktoken:o200k_base
"""
import sys
import time

from tokenizer_oracle import encoder


def main():
    encode, stream, docs = encoder(sys.argv[1]), sys.stdin.buffer, []
    while (size := int.from_bytes(stream.read(4), "little")) != 0xFFFFFFFF:
        docs.append(stream.read(size).decode("utf-8", "replace"))
    while stream.readline():
        tokens, began = 0, time.thread_time()
        for doc in docs:
            tokens += len(encode(doc))
        print(time.thread_time() - began, tokens, flush=True)


if __name__ == "__main__":
    main()
