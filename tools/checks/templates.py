#!/usr/bin/env python3
"""Compare the rendering of chat templates with Python's jinja2, set up as Hugging Face transformers does.

    templates.py [--real DIR] [--random N] [--seed S]
    templates.py --write              fill in what jinja2 gives for internal/jinja/testdata/expressions.jsonl

1. The expressions of internal/jinja/testdata/expressions.jsonl still give what is written there.
2. Every template of anonymize/testdata/templates x every conversation of chats.jsonl there, twice: with the
   variables as transformers passes them (through internal/jinja alone), and as a prompt (through package anonymize,
   against the conversions that serving engines do, written here on their own).
3. With --real: the same for the chat_template of every tokenizer_config.json below DIR, and the fast path chatml
   against that of Qwen3.
4. N random templates: equal text, or refused; never other text.

Needs jinja2 (tools/checks/templates.txt) and Go. Exit 0 when everything agrees, 1 when not.
"""
import argparse
import copy
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import warnings

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

import templates_random

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "anonymize/testdata/templates"
EXPRESSIONS = ROOT / "internal/jinja/testdata/expressions.jsonl"
DAY = datetime.datetime(2024, 7, 26)  # the fixed day of strftime_now


class Generation(Extension):
    """The tag that transformers adds to mark the assistant's tokens; it renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @staticmethod
    def _body(caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = DAY.strftime
    return env


ENV = environment()


def python(source, variables):
    """Return the text, or None and why not."""
    try:
        text = ENV.from_string(source).render(**copy.deepcopy(variables))
    except Exception as err:  # whatever a template does wrong
        return None, f"{type(err).__name__}: {err}"
    return re.sub("[\ud800-\udfff]", "\ufffd", text), None


def go(jobs):
    run = subprocess.run(["go", "run", "./tools/templates"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                         input="".join(json.dumps(j) + "\n" for j in jobs), check=True)
    answers = [json.loads(line) for line in run.stdout.split("\n") if line]
    assert len(answers) == len(jobs), (len(answers), len(jobs))
    return answers


class Score:
    def __init__(self, name):
        self.name, self.same, self.refused, self.only_go, self.faults = name, 0, 0, 0, 0

    def compare(self, label, want, why, answer, may_refuse=False):
        got = answer.get("text")
        if want is None and got is None:
            self.refused += 1
        elif got is None and may_refuse:
            self.only_go += 1
        elif want == got:
            self.same += 1
        else:
            self.faults += 1
            if self.faults <= 5:
                print(f"{self.name}: {label}\n  jinja2: {why or json.dumps(want, ensure_ascii=False)[:1500]}\n"
                      f"  here:   {json.dumps(answer, ensure_ascii=False)[:1500]}", file=sys.stderr)

    def done(self):
        print(f"{self.name}: {self.same} equal, {self.refused} refused by both, {self.only_go} refused only here, {self.faults} differ")
        return self.faults == 0 and self.same > 0


def load_chats():
    return [json.loads(line) for line in (TEMPLATES / "chats.jsonl").read_text(encoding="utf-8").split("\n") if line]


def loads(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def transformers_variables(chat):
    """The variables of apply_chat_template: messages as they are, arguments as objects."""
    messages = json.loads(json.dumps(chat["messages"]))
    for m in messages:
        for c in m.get("tool_calls", []):
            c["function"]["arguments"] = loads(c["function"]["arguments"])
    return {"messages": messages, "tools": chat.get("tools"), "documents": None, "add_generation_prompt": True}


def digest(data):
    return hashlib.sha256(data.encode()).hexdigest()


def parts(content, as_list):
    """A message's content as serving engines pass it: a text, or a list where the template goes through parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if as_list:
        out = []
        for p in content:
            if p["type"] == "text":
                out.append({"type": "text", "text": p["text"]})
            else:
                out += [{"type": "image"}, {"type": "text", "text": digest(p["image_url"]["url"])}]
        return out if len(out) > 1 else out[0]["text"]
    text, last = "", None
    for p in content:
        if p["type"] == "text":
            text += ("\n" if last == "text" else "") + p["text"]
        else:
            text += f"[image {digest(p['image_url']['url'])}]"
        last = p["type"]
    return text


def engine_variables(chat, source):
    """The variables as engines pass them; quoted arguments and None where the template takes only those."""
    as_list = re.search(r"for \w+ in message\W+content", source) is not None
    quoted = re.search(r"\+\s*\w+\['function'\]\['arguments'\]", source) is not None
    messages = []
    for m in chat["messages"]:
        out = {"role": m["role"], "content": parts(m["content"], as_list)}
        if m.get("name"):
            out["name"] = m["name"]
        if m.get("tool_calls"):
            if m["content"] is None and quoted:
                out["content"] = None
            out["tool_calls"] = []
            for c in m["tool_calls"]:
                raw = c["function"]["arguments"] or "{}"
                out["tool_calls"].append({"id": c["id"], "type": "function", "function": {
                    "name": c["function"]["name"], "arguments": raw if quoted else loads(raw)}})
        if m.get("tool_call_id"):
            out["tool_call_id"] = m["tool_call_id"]
        messages.append(out)
    return {"messages": messages, "tools": chat.get("tools"), "documents": None, "add_generation_prompt": True}


def token(config, name):
    value = config.get(name)
    return value["content"] if isinstance(value, dict) else value


def config_variables(config):
    return {n: token(config, n) for n in ("bos_token", "eos_token", "pad_token", "unk_token") if token(config, n)}


def compare_templates(name, templates, chats):
    """templates: (label, path for Go, source, config)."""
    raw, whole, jobs, wants = Score(f"{name}, as transformers renders"), Score(f"{name}, as engines render"), [], []
    for label, path, source, config in templates:
        for chat in chats:
            extra = config_variables(config)
            variables = {**transformers_variables(chat), **extra}
            jobs.append({"source": source, "vars": variables})
            wants.append((raw, f"{label}: {chat['name']}", python(source, variables)))
            jobs.append({"template": "jinja:" + str(path), "chat": chat})
            wants.append((whole, f"{label}: {chat['name']}", python(source, {**engine_variables(chat, source), **extra})))
    for (score, label, (text, why)), answer in zip(wants, go(jobs)):
        score.compare(label, text, why, answer)
    return raw.done() & whole.done()


def fixtures():
    config = json.loads((TEMPLATES / "tokenizer_config.json").read_text(encoding="utf-8"))
    return [(p.stem, p, p.read_text(encoding="utf-8"), config) for p in sorted(TEMPLATES.glob("*.jinja"))]


def real(folder):
    out = []
    for p in sorted(pathlib.Path(folder).glob("**/tokenizer_config.json")):
        config = json.loads(p.read_text(encoding="utf-8"))
        if isinstance(config.get("chat_template"), str):
            out.append((p.parts[-3], p, config["chat_template"], config))
    return out


def plain_history(chat):
    """Conversations that Qwen3's template writes without its rules for reasoning, unknown roles and pictures."""
    messages = chat["messages"]
    roles = {m["role"] for m in messages}
    text = json.dumps(messages)
    return roles <= {"system", "user", "assistant", "tool"} and messages[-1]["role"] in ("user", "tool") \
        and "think>" not in text and "image_url" not in text


def compare_chatml(templates, chats):
    score, jobs, wants = Score("chatml against Qwen3"), [], []
    for label, _, source, _ in templates:
        if "qwen3" in label:
            for chat in filter(plain_history, chats):
                jobs.append({"template": "chatml", "chat": chat})
                wants.append((chat["name"], python(source, engine_variables(chat, source))))
    if not jobs:
        print("chatml against Qwen3: skipped, no such template is there")
        return True
    for (label, (text, why)), answer in zip(wants, go(jobs)):
        score.compare(label, text, why, answer)
    return score.done()


def compare_random(n, seed):
    score = Score(f"random templates, seed {seed}")
    jobs = list(templates_random.jobs(n, seed))
    for job, answer in zip(jobs, go(jobs)):
        text, why = python(job["source"], job["vars"])
        score.compare(job["source"], text, why, answer, may_refuse=True)
    if score.only_go > 0.1 * n:
        print(f"random templates: {score.only_go} of {n} are refused only here", file=sys.stderr)
        return False
    return score.done()


def expressions(write):
    lines = [json.loads(line) for line in EXPRESSIONS.read_text(encoding="utf-8").split("\n") if line]
    bad = 0
    for line in lines:
        text, _ = python(line["source"], templates_random.VARIABLES)
        want = {"text": text} if text is not None else {"refused": True}
        have = {k: line[k] for k in ("text", "refused") if k in line}
        if write:
            line.pop("text", None)
            line.pop("refused", None)
            line.update(want)
        elif have != want and not line.get("unsupported"):
            bad += 1
            print(f"{line['source']}: {have}, jinja2 gives {want}", file=sys.stderr)
    if write:
        EXPRESSIONS.write_text("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines), encoding="utf-8")
    print(f"expressions: {len(lines) - bad} of {len(lines)} {'written' if write else 'hold'}")
    return bad == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--real")
    parser.add_argument("--random", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=SyntaxWarning)
    if options.write:
        return 0 if expressions(True) else 1
    chats = load_chats()
    ok = expressions(False)
    ok &= compare_templates("our templates", fixtures(), chats)
    if options.real and real(options.real):
        ok &= compare_templates("published templates", real(options.real), chats)
        ok &= compare_chatml(real(options.real), chats)
    else:
        print("published templates: skipped, none are there")
    ok &= compare_random(options.random, options.seed)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
