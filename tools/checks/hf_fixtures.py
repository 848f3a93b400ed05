"""Small tokenizer.json files for the tests of internal/bpe, and the ids that Hugging Face's library gives.

Usage: hf_fixtures.py --train | --golden | --check       (needs tokenizers 0.23.3)

--train writes new files and their golden ids, --golden only the ids, --check compares them. Each file has a few
hundred tokens, trained on text of this script, and one way of setting the options.
"""
import json
import pathlib
import random
import sys

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

DIR = pathlib.Path(__file__).resolve().parents[2] / "internal" / "bpe" / "testdata" / "hf"

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
O200K = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])

WORDS = ("the of and to in is that it for on with as this from by are have not they which one you all their there would been has when who "
         "will more if out so what up its about than into them can only other new some could time these two may then first any like now "
         "function return value request token prefix cache latency queue batch server client error number string length result model").split()
HAN = "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事"
KANA = "のにはをたがでてとしれさるいかなんすこっうおりよまもらえくけせそつ"


def text(random):
    out = []
    for _ in range(12000):
        kind = random.random()
        word = random.choice(WORDS)
        if kind < 0.08:
            word = word.capitalize()
        elif kind < 0.12:
            word += random.choice([".", ",", ";\n", "()", " {\n\t", "\n\n"])
        elif kind < 0.2:
            word = "".join(random.choice(HAN) for _ in range(random.randrange(1, 6)))
        elif kind < 0.25:
            word = "".join(random.choice(KANA) for _ in range(random.randrange(1, 6)))
        elif kind < 0.3:
            word = str(random.randrange(10 ** random.randrange(1, 6)))
        elif kind < 0.33:
            word = random.choice(["café", "naïve", "Übung", "привет", "мир", "été", "don't", "it's", "we'll"])
        out.append(word)
    return " ".join(out)


def added(content, special=True, normalized=False, lstrip=False, rstrip=False):
    return {"content": content, "single_word": False, "lstrip": lstrip, "rstrip": rstrip, "normalized": normalized, "special": special}


def splits(*patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), behavior="isolated") for p in patterns] +
                                   [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def trained(pre, normalizer, seed, size=560):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer, tok.decoder = pre, decoders.ByteLevel()
    if normalizer:
        tok.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tok.train_from_iterator([text(random.Random(seed))], trainer)
    return json.loads(tok.to_str())


def shuffle_ids(spec, seed):
    """Ids that no longer follow the order of merges, as Llama 3 has some (T1)."""
    vocab = spec["model"]["vocab"]
    ids = list(vocab.values())
    random.Random(seed).shuffle(ids)
    spec["model"]["vocab"] = dict(zip(vocab, ids))


def add_unreachable(spec, *tokens):
    """Tokens that no merge leads to (T2)."""
    for t in tokens:
        spec["model"]["vocab"][t] = len(spec["model"]["vocab"])


def finish(spec, tokens):
    vocab, number = spec["model"]["vocab"], len(spec["model"]["vocab"])
    for t in tokens:
        if t["content"] in vocab:
            t["id"] = vocab[t["content"]]
        else:
            t["id"], number = number, number + 1
    spec["added_tokens"] = [{"id": t.pop("id"), **t} for t in tokens]
    return spec


def fixtures():
    nfc = normalizers.NFC()
    llama = trained(splits(LLAMA3), None, 1)
    shuffle_ids(llama, 1)
    add_unreachable(llama, "Ġwhole", "piece", "Ġunlikely", "中大来上")
    llama["model"]["ignore_merges"] = True
    llama["model"]["merges"] = [" ".join(m) for m in llama["model"]["merges"]]
    # As an older writer left it: comment, no type.
    llama["model"]["merges"].insert(0, "#version: 0.2")
    del llama["model"]["type"]
    yield "llama3", finish(llama, [added("<|begin_of_text|>"), added("<|eot_id|>"), added("<|eot_id|><|x|>"), added("<|start_header_id|>"), added("<|end_header_id|>")])

    qwen = trained(splits(QWEN2), nfc, 2)
    add_unreachable(qwen, "Ġwhole", "piece")
    yield "qwen2", finish(qwen, [added("<|endoftext|>"), added("<|im_start|>"), added("<|im_end|>"), added("<think>", special=False),
                                 added("</think>", special=False), added("cafe\u0301!", special=False, normalized=True)])

    qwen35 = trained(splits(QWEN35), normalizers.Sequence([nfc]), 3)
    shuffle_ids(qwen35, 3)
    add_unreachable(qwen35, "Ġwhole")
    yield "qwen35", finish(qwen35, [added("<|im_start|>"), added("<|im_end|>", lstrip=True), added("<pad>", rstrip=True), added("<both>", lstrip=True, rstrip=True)])

    deep = trained(splits(*DEEPSEEK), normalizers.Sequence([]), 4)
    add_unreachable(deep, "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜never▁used｜>")
    yield "deepseek", finish(deep, [added("<｜begin▁of▁sentence｜>"), added("<｜end▁of▁sentence｜>"), added("<｜User｜>", normalized=True),
                                    added("<｜User｜><", normalized=False), added("<think>", special=False, normalized=True)])

    gpt2 = trained(pre_tokenizers.ByteLevel(add_prefix_space=False), None, 5)
    add_unreachable(gpt2, "<|endoftext|>")
    yield "gpt2", finish(gpt2, [added("<|endoftext|>", normalized=True)])

    yield "o200k", finish(trained(splits(O200K), None, 6), [added("<|endoftext|>"), added("<|return|>")])


# Each text is a trap that some tokenizer fell into, or a border of a pattern.
TEXTS = [
    "", " ", "\n", "the request of the cache", "The Request OF the cache", "a whole piece", " unlikely whole", "piecepiece piece", "中大来上", "這中大来上個",
    "it's don't we'll I'M you'RE they'Ve he'd 'tis", "it'ſ x'ſ", "'", "''s", "x'S's", "HelloWorld ABCd XMLHttp iPhone", "的ABC 的Abc 的abc",
    "\u0301ABC \u0301abc", "!!\u0301abc", "e\u0301te\u0301 cafe\u0301! cafe\u0301", "café! naïve Übung", "s\u0307\u0323 \u1e9b\u0323", "\u1112\u1161\u11ab\u1100\u1173\u11af한글",
    "\u0898\u0316a\u07fd\u0301", "か\u3099き\u3099くけ", "Å\u2126\u212b \uf900", "क्षि नमस्ते", "привет, мир", "مرحبا بالعالم", "ภาษาไทย", "1 12 123 1234 12345 1234567890",
    "½Ⅷ٣१〇一二三", "a1b22c333", "  a  b   c    d", "a\n\nb \n c\n  \n", "a \n", "a\t\tb\r\n\r\nc", "a\u00a0\u00a0b\u3000c\u2028d\x85e\x1cf", " \u3000 \n \u00a0x", "x   ", "x\n   ", "   \n   x",
    "!\n/ ?/\n//", "()[]{}<>", "a.b,c;d:e", "func main() {\n\treturn\n}", "<div>", "#include <x.h>", "$100 €5 £3", "a_b-c+d=e", "...\n\n...", " ..", " !?x",
    "。」「、！", "人。我", "人1我2", "カー・ボン゛゜", "\u3040か\u3099\u3097", "ア12イab", "a中b", "中 大", "中\n大", "！abc ·abc €abc", "!abc !中 ¡é", "\x00a\x00\x00", "\ue000a\ue000\ue000 \ue000!",
    "\U000e0001x\u200dy\ufeff", "🙂🙂 👨‍👩‍👧 🇩🇪", "\ufffd\ufffdx", "\U000323af\U0001e2ec", "=" * 70, "a" * 70, " " * 70, "ab" * 40, "中" * 30, "123" * 20,
    "<|im_start|>user\nthe<|im_end|>\n", " <|im_end|> x", "<pad>  x <both>  y  <both>z", "<|endoftext|><|endoftext|>", "<|endoftext|", "<<|im_start|>>", "a<think>b</think>c",
    "<|eot_id|><|x|>", "<|eot_id|><|x", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nthe<|eot_id|>", "<|return|>\n<|return|",
    "<｜begin▁of▁sentence｜><｜User｜>the<think>\n", "<｜User｜><think>", "<｜User｜><｜User｜>", "<｜never▁used｜>", "e<|im_start|>\u0301", "e\u0301<|im_start|>\u0301e",
]


def golden(path):
    full = json.loads(path.read_text())
    plain = json.loads(path.read_text())
    plain["added_tokens"] = []
    out = {}
    for name, spec in (("plain", plain), ("special", full)):
        tok = Tokenizer.from_str(json.dumps(spec))
        out[name] = [tok.encode(t, add_special_tokens=False).ids for t in TEXTS]
    return out


def main():
    mode = sys.argv[1:]
    DIR.mkdir(parents=True, exist_ok=True)
    if mode == ["--train"]:
        for name, spec in fixtures():
            (DIR / (name + ".json")).write_text(json.dumps(spec, ensure_ascii=name == "qwen35", separators=(",", ":")) + "\n")
    rows = ['"texts": ' + json.dumps(TEXTS)]
    for path in sorted(DIR.glob("*.json")):
        if path.name != "golden.json":
            rows.append('"%s": %s' % (path.stem, json.dumps(golden(path), separators=(",", ":"))))
    made = "{" + ",\n".join(rows) + "}\n"
    if mode in (["--train"], ["--golden"]):
        (DIR / "golden.json").write_text(made)
    elif mode != ["--check"]:
        raise SystemExit(__doc__)
    elif (DIR / "golden.json").read_text() != made:
        raise SystemExit("golden.json differs from what the library gives")
    print("%d tokenizers, %d texts each" % (len(rows) - 1, len(TEXTS)))


main()
