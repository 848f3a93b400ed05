"""OpenAI's own Python client against `tailgate sim`: every route, streamed and not, and every error as the exception
that the client makes of it. Usage: openai_client.py TAILGATE_BINARY"""

import contextlib
import subprocess
import sys
import time

import openai

MODEL = "served"
MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello there"}]


@contextlib.contextmanager
def sim(binary, *settings):
    spec = ",".join(("a=2,b=0,c=0,d=0,e=0,max_model_len=2000", f"model={MODEL}") + settings)
    p = subprocess.Popen([binary, "sim", spec, "--listen", "127.0.0.1:0", "--quiet"], stdout=subprocess.PIPE, text=True)
    try:
        url = p.stdout.readline().split()[-1]
        yield openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=20)
    finally:
        p.terminate()
        assert p.wait(20) == 0, "the simulator did not end well"


def raises(kind, call, status=None, param=None):
    try:
        result = call()
        if hasattr(result, "__iter__") and not hasattr(result, "model_dump"):
            list(result)
    except kind as e:
        assert type(e) is kind, f"{type(e).__name__} instead of {kind.__name__}: {e}"
        if status:
            assert e.status_code == status, e
            assert e.body["code"] == status and e.body["message"] and e.type, e.body
            assert e.param == param, e.body
        return e
    raise AssertionError(f"no {kind.__name__}")


def chat(c):
    r = c.chat.completions.create(model=MODEL, messages=MESSAGES, max_completion_tokens=7)
    assert r.choices[0].message.role == "assistant" and len(r.choices[0].message.content) == 28, r
    assert r.usage.completion_tokens == 7 and r.usage.prompt_tokens > 5, r
    assert r.choices[0].finish_reason == "length" and r.id.startswith("chatcmpl-"), r
    chunks = list(c.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=7, stream=True,
                                            stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant", chunks[0]
    assert "".join(x.choices[0].delta.content for x in chunks if x.choices) != "", chunks
    assert [x.choices[0].finish_reason for x in chunks if x.choices][-1] == "length"
    assert chunks[-1].usage.completion_tokens == 7 and not chunks[-1].choices, chunks[-1]
    with c.chat.completions.stream(model=MODEL, messages=MESSAGES, max_tokens=7) as s:
        events = list(s)
    assert any(e.type == "content.delta" for e in events), [e.type for e in events]
    per_event = list(c.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=5, stream=True, extra_body={
        "stream_options": {"include_usage": True, "continuous_usage_stats": True}, "min_tokens": 5, "ignore_eos": True, "cache_salt": "s"}))
    assert [x.usage.completion_tokens for x in per_event] == [0, 1, 2, 3, 4, 5, 5], per_event


def completions(c):
    for prompt in ("hello there", [1, 2, 3, 4], ["hello"], [[1, 2, 3]]):
        r = c.completions.create(model=MODEL, prompt=prompt, max_tokens=4)
        assert r.usage.completion_tokens == 4 and len(r.choices[0].text) == 16, r
    chunks = list(c.completions.create(model=MODEL, prompt=[5] * 100, max_tokens=4, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.prompt_tokens == 100 and sum(len(x.choices) for x in chunks) == 4, chunks
    r = c.completions.create(model=MODEL, prompt=[5] * 100, max_tokens=4)
    assert r.usage.prompt_tokens_details.cached_tokens == 96, r


def responses(c):
    r = c.responses.create(model=MODEL, input="hello there", instructions="be brief", max_output_tokens=6)
    assert len(r.output_text) == 24 and r.status == "incomplete" and r.incomplete_details.reason == "max_output_tokens", r
    assert r.usage.output_tokens == 6 and r.usage.total_tokens == r.usage.input_tokens + 6, r
    r = c.responses.create(model=MODEL, input=[{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}])
    assert r.status == "completed" and r.usage.output_tokens == 256, r
    events = list(c.responses.create(model=MODEL, input="hello", max_output_tokens=6, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    kinds = [e.type for e in events]
    assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"], kinds
    assert kinds.count("response.output_text.delta") == 6, kinds
    assert kinds[-4:] == ["response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete"], kinds
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert events[-1].response.output_text == text and events[-4].text == text
    with c.responses.stream(model=MODEL, input="hello") as s:
        for _ in s:
            pass
        assert s.get_final_response().status == "completed"


def errors(c):
    ask = c.chat.completions.create
    raises(openai.NotFoundError, lambda: ask(model="other", messages=MESSAGES), 404, "model")
    raises(openai.BadRequestError, lambda: ask(model=MODEL, messages=[]), 400, "messages")
    raises(openai.BadRequestError, lambda: ask(model=MODEL, messages=MESSAGES, max_tokens=-1), 400, "max_tokens")
    raises(openai.BadRequestError, lambda: ask(model=MODEL, messages=MESSAGES, extra_body={"max_tokens": "many"}), 400, "max_tokens")
    raises(openai.BadRequestError, lambda: c.completions.create(model=MODEL, prompt=[1] * 2001), 400, "input_tokens")
    raises(openai.BadRequestError, lambda: c.completions.create(model=MODEL, prompt=[1] * 2001, stream=True), 400, "input_tokens")
    raises(openai.BadRequestError, lambda: c.responses.create(model=MODEL, input="x", previous_response_id="resp_1"), 400, "previous_response_id")
    raises(openai.NotFoundError, lambda: c.models.retrieve("other"), 404, "model")
    raises(openai.NotFoundError, lambda: c.embeddings.create(model=MODEL, input="x"), 404)
    assert c.models.list().data[0].id == MODEL and c.models.retrieve(MODEL).max_model_len == 2000


def faults(binary):
    def ask(c, **more):
        return lambda: c.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=9, **more)

    def streamed(c):
        return c.completions.create(model=MODEL, prompt="x", max_tokens=9, stream=True, stream_options={"include_usage": True})

    with sim(binary, "http_429=1") as c:
        e = raises(openai.RateLimitError, ask(c), 429)
        assert e.response.headers["retry-after"] == "1", e.response.headers
    with sim(binary, "http_503=1") as c:
        raises(openai.InternalServerError, ask(c), 503)
    with sim(binary, "reset=1") as c:
        for more in ({}, {"stream": True}):
            raises(openai.APIConnectionError, ask(c, **more))
    with sim(binary, "error_event=1") as c:
        raises(openai.InternalServerError, ask(c), 500)
        raises(openai.APIError, ask(c, stream=True))
        kinds = [e.type for e in c.responses.create(model=MODEL, input="x", stream=True)]
        assert kinds[-1] == "response.failed", kinds
    with sim(binary, "cut=1") as c:
        try:
            n = len(list(streamed(c)))
            raise AssertionError(f"a cut stream ended well after {n} chunks")
        except openai.APIError:
            pass
        except Exception as e:  # the client lets the transport's error through
            assert "incomplete chunked read" in str(e) or "closed" in str(e), repr(e)
    with sim(binary, "empty=1") as c:
        r = ask(c)()
        assert r.choices[0].message.content == "" and r.usage.completion_tokens == 0, r
        chunks = list(streamed(c))
        assert chunks[-1].usage.completion_tokens == 0 and chunks[0].choices[0].finish_reason == "stop", chunks
    with sim(binary, "chunk=1:4", "role_first=1", "reasoning=1:25%", "keep_alive=1:1ms", "late_usage=1:50ms") as c:
        chunks = list(ask(c, stream=True, stream_options={"include_usage": True})())
        deltas = [x.choices[0].delta for x in chunks if x.choices]
        assert deltas[0].role == "assistant" and not deltas[0].content, deltas
        assert len(deltas[1].reasoning) == 8 and [len(d.content) for d in deltas[2:]] == [16, 12], deltas
        assert chunks[-1].usage.completion_tokens_details.reasoning_tokens == 2, chunks[-1]
        events = list(c.responses.create(model=MODEL, input="x", max_output_tokens=8, stream=True))
        kinds = [e.type for e in events]
        assert kinds.count("response.reasoning_text.delta") == 1 and kinds.count("response.output_text.delta") == 2, kinds
        assert [o.type for o in events[-1].response.output] == ["reasoning", "message"], events[-1]


def hang_up(c):
    s = c.completions.create(model=MODEL, prompt="x", max_tokens=1900, stream=True)
    next(iter(s))
    s.close()
    for _ in range(100):
        running = [l for l in c.get("../metrics", cast_to=str).splitlines() if l.startswith("vllm:num_requests_running")]
        if all(l.endswith(" 0") for l in running):
            return
        time.sleep(0.05)
    raise AssertionError("a hang-up left its slot taken")


def main():
    binary = sys.argv[1]
    with sim(binary) as c:
        for check in (chat, completions, responses, errors, hang_up):
            check(c)
            print("ok", check.__name__)
    faults(binary)
    print("ok faults; openai", openai.__version__)


main()
