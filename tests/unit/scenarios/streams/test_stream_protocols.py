"""Each protocol gives the answers that a server of its specification gave, and its errors one code and one line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.names import Contestants, contestant_named
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.asked import streams_asked
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.clients.client_of_server import client_for
from fairlap.scenarios.streams.equal_work.examination import examine
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Fields
from fairlap.scenarios.streams.servers import stream_server
from stream_protocols import (
    PROMPT_TOKENS,
    Dialect,
    Ollama,
    OllamaChat,
    OpenInference,
    ProtocolServer,
    Tgi,
    TritonTensors,
    TritonVllm,
)
from stream_races import TOKENS, codes, raced_by_name
from stream_server import StreamingServer

DIALECTS: dict[type[Dialect], Fields] = {
    Tgi: "plain",
    Ollama: "plain",
    OllamaChat: "plain",
    OpenInference: "plain",
    TritonVllm: "forced",
    TritonTensors: "inputs",
}
needs_httpx = pytest.mark.usefixtures("httpx")


@pytest.fixture
def httpx() -> None:
    pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")


def prompt_for(dialect: type[Dialect]) -> Prompt:
    return Prompt(messages=({"role": "user", "content": "Hi"},)) if dialect is OllamaChat else Prompt(prompt="Hi")


def asked(server: StreamingServer, dialect: type[Dialect]) -> Answer:
    prompt = prompt_for(dialect)
    named = stream_server(contestant_named(server.at(":timeout=30s")), chat=prompt.is_chat, remote=False)
    client = client_for(named, Certificates().context(), TOKENS)
    try:
        assert client.connect()
        return answer_in(client.ask(named.body(prompt, TOKENS, DIALECTS[dialect])), named)
    finally:
        client.close()


@needs_httpx
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_has_the_text_the_tokens_and_the_times_of_its_server(dialect: type[Dialect]) -> None:
    with ProtocolServer(dialect(), each_ms=1.0) as server:
        found = asked(server, dialect)
        [truth] = server.truths
        words = server._words("Hi", TOKENS, "")
    assert found.failure is None
    assert (truth.prompt, found.text, found.tokens, sum(found.arrived)) == ("Hi", "".join(words), TOKENS, TOKENS)
    assert all(wrote < came for wrote, came in zip(truth.tokens_ns, found.came_ns, strict=False))
    counted = {Tgi: "events' usage", TritonVllm: "events' usage", Ollama: "usage", OllamaChat: "usage"}
    assert found.counted_by == counted.get(dialect, "events")
    assert found.finish == ("" if dialect in (OpenInference, TritonTensors) else "length")
    assert found.prompt_tokens == (PROMPT_TOKENS if dialect in (Tgi, Ollama, OllamaChat) else 0)


@needs_httpx
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_fields_that_a_server_understands_are_found_out(dialect: type[Dialect]) -> None:
    prompt = prompt_for(dialect)
    with ProtocolServer(dialect()) as server:
        named = stream_server(contestant_named(server.at()), chat=prompt.is_chat, remote=False)
        found = examine(named, Certificates().context(), [prompt], TOKENS)
    assert (found.fields, found.why_not) == (DIALECTS[dialect], None)


FAULTS = {
    "429": ("E_STREAM_BUSY", "429: Model is overloaded"),
    "error": ("E_STREAM_EVENT", ": out\\u001b[2J of memory"),
    "rubbish": ("E_STREAM_EVENT", ""),
    "cut": ("E_STREAM_CUT", ""),
    "unfinished": ("E_STREAM_CUT", ""),
}


@needs_httpx
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_way_to_go_wrong_has_a_code_and_one_line(fault: str, dialect: type[Dialect]) -> None:
    with ProtocolServer(dialect(), fault=fault) as server:
        found = asked(server, dialect)
    if fault == "unfinished" and not dialect.says_its_end:
        assert 0 < found.tokens < TOKENS  # nothing shows the end but the number of tokens
        return
    code, shown = FAULTS[fault]
    assert found.failure is not None
    assert (found.failure.code, found.failure.text.isprintable()) == (code, True)
    assert shown in found.failure.text


@needs_httpx
def test_an_answer_that_the_model_ended_has_that_reason_and_its_last_token_no_text() -> None:
    with ProtocolServer(Tgi(), fault="stops") as server:
        found = asked(server, Tgi)
    assert (found.failure, found.finish, found.tokens, len(found.text.split())) == (None, "eos_token", 5, 4)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(f'{{"prompt": "number {place}"}}\n' for place in range(20)))
    return path


@needs_httpx
def test_servers_of_different_protocols_race_with_equal_answers(prompts: Path) -> None:
    dialects = (Tgi, Ollama, OpenInference, TritonVllm)
    with ExitStack() as stack:
        openai = stack.enter_context(StreamingServer(first_ms=3.0))
        others = [stack.enter_context(ProtocolServer(each(), each_ms=1.0)) for each in dialects]
        found = raced_by_name(prompts, *(each.at() for each in (openai, *others)))
        sent = [[each.prompt for each in server.truths[-20:]] for server in others]
    assert [row.outcome for row in found.rows] == 5 * ["finished"]
    forced, at_most = "forced", "not forced"
    expected = {("completions", forced), ("tgi", at_most), ("ollama", at_most), ("kserve", at_most), ("kserve", forced)}
    assert {(row.settings["api"], row.settings["length"]) for row in found.rows} == expected
    compared = [each.streams.agreement for each in found.run.processes if each.streams and each.streams.agreement]
    assert [each.identical for each in compared] == 4 * [20]
    assert all(sorted(each) == sorted(sent[0]) for each in sent)


MODULE = """
import time

def ask(prompt, tokens):
    for place in range(tokens):
        time.sleep(0.001)
        yield f" {prompt}{place}"

def counted(prompt, tokens):
    yield from ((f" {prompt}{place}", 2) for place in range(tokens // 2))

def silent(prompt, tokens):
    return []

def broken(prompt, tokens):
    yield " one"
    raise ConnectionError("out of" + chr(27) + "[2J memory")

def numbers(prompt, tokens):
    yield 7

def endless(prompt, tokens):
    while True:
        yield " more"

def slow(prompt, tokens):
    for _ in range(tokens):
        time.sleep(0.2)
        yield " late"
"""


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Answer]:
    (tmp_path / "own_functions_that_ask.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def answer(name: str) -> Answer:
        named = stream_server(contestant_named(f"own_functions_that_ask:{name}"), chat=False, remote=False)
        client = client_for(named, Certificates().context(), TOKENS)
        return answer_in(client.ask(named.body(Prompt(prompt="Hi"), TOKENS, "plain")), named)

    return answer


@pytest.mark.parametrize(("name", "counted_by", "arrivals"), [("ask", "events", 8), ("counted", "events' usage", 4)])
def test_a_function_yields_the_texts_of_an_answer(
    name: str, counted_by: str, arrivals: int, function: Callable[[str], Answer]
) -> None:
    found = function(name)
    assert (found.failure, found.tokens, found.counted_by, len(found.came_ns)) == (None, TOKENS, counted_by, arrivals)
    assert found.text.startswith(" Hi0 Hi1")
    if name == "ask":
        assert found.came_ns[-1] - found.came_ns[0] >= 7e6


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("broken", "E_STREAM_FUNCTION"),
        ("silent", "E_STREAM_EVENT"),
        ("numbers", "E_STREAM_EVENT"),
        ("endless", "E_STREAM_ENDLESS"),
        ("slow:timeout=100ms", "E_STREAM_TIMEOUT"),
    ],
)
def test_a_function_that_goes_wrong_has_a_code_and_one_line(
    name: str, code: str, function: Callable[[str], Answer]
) -> None:
    failure = function(name).failure
    assert failure is not None
    assert (failure.code, failure.text.isprintable()) == (code, True)
    assert "own_functions_that_ask" in failure.text


@pytest.mark.usefixtures("function")
def test_functions_race_and_are_their_own_clients(prompts: Path) -> None:
    names = [f"own_functions_that_ask:{name}" for name in ("ask", "counted", "broken")]
    found = raced_by_name(prompts, *names)
    by_name = {row.contestant.partition(":")[2]: row for row in found.rows}
    assert by_name["ask"].outcome == "finished"
    assert (by_name["ask"].settings["api"], by_name["ask"].settings["certificates"]) == (
        "function",
        "none, by a function",
    )
    [counted] = [each.streams for each in found.run.processes if each.contestant == names[1]]
    assert counted is not None
    assert counted.figures is not None
    assert counted.figures.counts.tokens == 20 * TOKENS
    assert codes(by_name["broken"]) == {"E_STREAM_FUNCTION"}


@pytest.mark.parametrize(
    ("text", "chat", "code"),
    [
        ("torch:compile", False, "E_CONTESTANT"),
        ("json:dumps:model=m", False, "E_CONTESTANT"),
        ("json:no_such_function", False, "E_REQUEST"),
        ("no_such_module_here:ask", False, "E_REQUEST"),
        ("http://127.0.0.1:8080:api=tgi", True, "E_CONTESTANT"),
        ("http://127.0.0.1:8080:api=function", False, "E_CONTESTANT"),
        ("http://127.0.0.1:8080:api=kserve", False, "E_CONTESTANT"),
    ],
)
def test_what_cannot_be_asked_is_refused(text: str, chat: bool, code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        stream_server(contestant_named(text), chat=chat, remote=False)
    assert raised.value.code == code


def test_a_chat_with_pictures_is_refused_where_its_protocol_has_texts_alone(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}\n')
    with pytest.raises(InvalidRequest) as raised:
        streams_asked(path, Contestants("http://127.0.0.1:1:model=m:api=ollama"), tokens=4, rate=5.0)
    assert raised.value.code == "E_PROMPTS"
    assert streams_asked(path, Contestants("http://127.0.0.1:1:model=m"), tokens=4, rate=5.0).servers[0].api == "chat"
