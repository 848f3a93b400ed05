#!/usr/bin/env python3
"""Recompute the golden vectors of package anonymize from the published scheme, without its code.

    chain_vectors.py [FILE]           check FILE (default: anonymize/testdata/chain_vectors.json)
    chain_vectors.py --write [FILE]   fill in what the scheme gives for the inputs in FILE

Standard library only. Exit 0 when every vector holds, 1 when one does not.
"""
import base64
import hashlib
import hmac
import json
import pathlib
import struct
import sys

RS = 0x1E
MEDIA = {"image": b"I", "audio": b"A", "file": b"F"}


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def sub_key(secret, kind):
    """HKDF-SHA256 (RFC 5869) without salt, one output block."""
    prk = mac(bytes(32), secret)
    return mac(prk, b"tailgate/1/" + kind.encode() + b"\x01")


def first63(digest):
    return int.from_bytes(digest[:8], "big") & (2**63 - 1)


def field(data):
    return struct.pack("<I", len(data)) + data


def chain(key, scope, tokens):
    size = scope["block_size"]
    names = ("model", "adapter", "cache_salt", "tenant", "tokenizer")
    parts = ["v1"] + [scope.get(n, "") for n in names] + [str(size)]
    state = mac(key, b"".join(field(p.encode()) for p in parts))
    ids = []
    for i in range(0, len(tokens), size):
        block = tokens[i : i + size]
        domain = b"\x00" if len(block) == size else b"\x01"
        state = mac(key, state + domain + struct.pack("<%dI" % len(block), *block))
        ids.append(first63(state))
    return ids


def text_of(part):
    return bytes.fromhex(part["hex"]) if "hex" in part else part.get("text", "").encode()


def escape(data):
    out = bytearray()
    for b in data:
        if b == RS:
            out += bytes((RS, RS))
        elif b >= 0xF8:
            out += bytes((RS, b - 0x80))
        else:
            out.append(b)
    return bytes(out)


def marked(letter, data):
    return bytes((RS,)) + letter + escape(data)


def plain_completion(prompt):
    messages = prompt.get("messages", [])
    if prompt.get("tools") or len(messages) != 1:
        return False
    m = messages[0]
    if any(m.get(k) for k in ("role", "name", "tool_call_id", "tool_calls")):
        return False
    return [p["kind"] for p in m.get("parts", [])] == ["text"]


def render(prompt):
    """Return the plain rendering, and where its first gap is (None: it is whole)."""
    full, intact = prompt["state"] == "full", prompt.get("intact", 0)
    out, gaps = b"", []
    if not full and intact == 0:
        gaps.append(0)
    for t in prompt.get("tools", []):
        out += marked(b"T", t["name"].encode())
        out += marked(b"D", t["description"].encode())
        out += marked(b"P", t["parameters"].encode())
    for i, m in enumerate(prompt.get("messages", [])):
        if not full and i == intact:
            gaps.append(len(out))
        if plain_completion(prompt):
            out += escape(text_of(m["parts"][0]))
            continue
        out += marked(b"M", m.get("role", "").encode())
        if m.get("name"):
            out += marked(b"N", m["name"].encode())
        if m.get("tool_call_id"):
            out += marked(b"R", m["tool_call_id"].encode())
        for p in m.get("parts", []):
            data = text_of(p)
            if p["kind"] == "text":
                out += marked(b"X", data)
            elif not data:
                gaps.append(len(out))
            elif p["kind"] in MEDIA:
                out += marked(MEDIA[p["kind"]], hashlib.sha256(data).hexdigest().encode())
            else:
                out += marked(b"O", data)
        for c in m.get("tool_calls", []):
            out += marked(b"C", c["name"].encode())
            out += marked(b"J", c["id"].encode())
            out += marked(b"G", c["arguments"].encode())
    if not full:
        gaps.append(len(out))
    return out, min(gaps, default=None)


def chars4(data):
    tokens = []
    for i in range(0, len(data), 4):
        piece = data[i : i + 4]
        if len(piece) < 4:
            piece = piece.ljust(3, b"\x00") + bytes((0xFC + len(piece),))
        tokens.append(int.from_bytes(piece, "little"))
    return tokens


def blocks(vector, secret):
    prompt, size = vector["prompt"], vector["block_size"]
    text, gap = render(prompt)
    if gap is not None:
        text = text[: gap // (4 * size) * (4 * size)]
    tokens = chars4(text)
    scope = {k: prompt.get(k, "") for k in ("model", "adapter", "cache_salt")}
    scope["tenant"] = prompt.get("tenant", "") if vector.get("tenant_scope") else ""
    scope.update(tokenizer="chars4/1", block_size=size)
    return len(tokens), chain(sub_key(secret, "block"), scope, tokens)


def expected(doc):
    """Yield (vector, the fields that the scheme gives for it)."""
    block = bytes.fromhex(doc["block_key"])
    pseudonym = bytes.fromhex(doc["pseudonym_key"])
    for v in doc["chains"]:
        key = sub_key(bytes.fromhex(v.get("block_key", doc["block_key"])), "block")
        yield v, {"sub_key": key.hex(), "ids": chain(key, v["scope"], v["tokens"])}
    for v in doc["prompts"]:
        tokens, ids = blocks(v, block)
        yield v, {"tokens": tokens, "ids": ids}
    for v in doc["tokens"]:
        digest = mac(sub_key(pseudonym, v["kind"]), v["value"].encode())
        yield v, {"token": v["letter"] + "_" + base64.b32encode(digest).decode().lower()[:13]}
    for v in doc["keys"]:
        message = b"".join(field(p.encode()) for p in v["parts"])
        yield v, {"key": first63(mac(sub_key(pseudonym, v["kind"]), message))}


def main(args):
    write = args[:1] == ["--write"]
    rest = args[1:] if write else args
    default = pathlib.Path(__file__).resolve().parents[2] / "anonymize/testdata/chain_vectors.json"
    path = pathlib.Path(rest[0]) if rest else default
    doc = json.loads(path.read_text(encoding="utf-8"))
    checked = bad = 0
    for vector, fields in expected(doc):
        for name, want in fields.items():
            checked += 1
            if write:
                vector[name] = want
            elif vector.get(name) != want:
                bad += 1
                print(f"{path.name}: {vector.get('name', vector)}: {name} = {vector.get(name)}, want {want}", file=sys.stderr)
    if write:
        path.write_text(dump(doc), encoding="utf-8")
    print(f"{checked - bad} of {checked} values {'written' if write else 'hold'}")
    return 1 if bad or not checked else 0


def dump(doc):
    """One vector a line, so that a change shows as one line."""
    lines = []
    for key, value in doc.items():
        if isinstance(value, list):
            rows = ",\n    ".join(json.dumps(v, ensure_ascii=False) for v in value)
            lines.append(f"  {json.dumps(key)}: [\n    {rows}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
