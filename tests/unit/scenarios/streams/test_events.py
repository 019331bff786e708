"""However the bytes of a stream are cut, its events are the same."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from fairlap.engine.measurement import Notice
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.clients.client import RawAnswer
from fairlap.scenarios.streams.clients.events import MOST_BYTES, EventReader, EventTooLarge, LineReader
from fairlap.scenarios.streams.servers import stream_server
from hypothesis import given
from hypothesis import strategies as st

STREAM = (
    b"\xef\xbb\xbf: a comment\n\ndata: one\n\n"
    b"event: token\r\ndata: two\r\nid: 7\r\n\r\n"
    b"data:three\rdata: lines\r\r"
    b"retry: 3\n\n: alone\ndata:  kept blank\n\nnothing\n\ndata: cut off"
)
EVENTS = [b"one", b"two", b"three\nlines", b" kept blank"]


def read(pieces: list[bytes]) -> list[bytes]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_every_cut_of_a_stream_gives_the_same_events(places: list[int]) -> None:
    ends = [0, *sorted(places), len(STREAM)]
    assert read([STREAM[a:b] for a, b in pairwise(ends)]) == EVENTS


LINES = b'{"a": 1}\n\n{"b": "\xc3\xa9"}\r\n \n{"c": 3}\n{"cut": '


@given(st.lists(st.integers(0, len(LINES)), max_size=12))
def test_every_cut_of_lines_of_json_gives_the_same_lines(places: list[int]) -> None:
    reader, ends = LineReader(), [0, *sorted(places), len(LINES)]
    found = [json.loads(line) for a, b in pairwise(ends) for line in reader.feed(LINES[a:b])]
    assert found == [{"a": 1}, {"b": "é"}, {"c": 3}]


def test_a_line_without_an_end_takes_bounded_memory() -> None:
    reader = LineReader()
    for _ in range(MOST_BYTES // 65_536):
        assert reader.feed(b"x" * 65_536) == []
    with pytest.raises(EventTooLarge):
        reader.feed(b"x")


def test_an_event_is_there_with_its_last_byte_and_not_before() -> None:
    reader = EventReader()
    assert reader.feed(b"data: one\n") == []
    assert reader.feed(b"\n") == [b"one"]


@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: " + b"x" * 65_536 + b"\n"])
def test_an_event_without_an_end_takes_bounded_memory(piece: bytes) -> None:
    with pytest.raises(EventTooLarge):
        read([piece] * (1 + MOST_BYTES // 65_536))


def chunk(text: str = "", count: int | None = None, finish: str | None = None, **more: object) -> bytes:
    usage = {} if count is None else {"usage": {"completion_tokens": count, "prompt_tokens": 2}}
    return json.dumps({"choices": [{"text": text, "finish_reason": finish}], **usage, **more}).encode()


def total(count: int) -> bytes:
    return json.dumps({"choices": [], "usage": {"completion_tokens": count, "prompt_tokens": 2}}).encode()


SERVER = stream_server(contestant_named("http://127.0.0.1:8000/v1:model=m"), chat=False, remote=False)


def answer(*events: bytes, done: bool = True) -> Answer:
    raw = RawAnswer(0, events=[(10 * (place + 1), data) for place, data in enumerate(events)], is_done=done)
    return answer_in(raw, SERVER)


def test_tokens_are_counted_by_what_the_server_says_of_each_event() -> None:
    found = answer(chunk("", 0), chunk("a", 1), chunk("bc", 3), chunk("", 4), chunk("", 4, "length"), total(4))
    assert (found.came_ns, found.arrived, found.tokens) == ((20, 30, 40), (1, 2, 1), 4)
    assert (found.counted_by, found.text, found.finish) == ("events' usage", "abc", "length")
    assert found.arrivals_are_exact


def test_without_that_they_are_counted_by_the_total_at_the_end() -> None:
    found = answer(chunk("a"), chunk("bc"), chunk("", finish="stop"), total(3))
    assert (found.arrived, found.tokens, found.counted_by) == ((1, 1), 3, "usage")
    assert not found.arrivals_are_exact
    assert answer(chunk("a"), chunk("b"), total(2)).arrivals_are_exact


def test_without_any_usage_each_event_is_one_token() -> None:
    found = answer(chunk("a"), chunk("b"), chunk(finish="stop"))
    assert (found.tokens, found.counted_by) == (2, "events")


def test_a_chat_has_its_text_and_its_reasoning_in_deltas() -> None:
    deltas = ({"role": "assistant", "content": ""}, {"reasoning_content": "hm"}, {"content": "yes"})
    events = [json.dumps({"choices": [{"delta": each}]}).encode() for each in deltas]
    found = answer(*events)
    assert (found.text, found.came_ns) == ("hmyes", (20, 30))


@pytest.mark.parametrize(
    ("events", "done", "code"),
    [
        ([b"{"], True, "E_STREAM_EVENT"),
        ([b'"text"'], True, "E_STREAM_EVENT"),
        ([b"\xff"], True, "E_STREAM_EVENT"),
        ([b"[" * 10_000], True, "E_STREAM_EVENT"),
        ([chunk("a"), b'{"error": {"message": "x"}}'], True, "E_STREAM_EVENT"),
        ([chunk(finish="length")], True, "E_STREAM_EVENT"),
        ([chunk("a"), total(-5)], True, "E_STREAM_EVENT"),
        ([chunk("a"), total(10**30)], True, "E_STREAM_EVENT"),
        ([chunk("a")], False, "E_STREAM_CUT"),
        ([], False, "E_STREAM_CUT"),
    ],
)
def test_what_is_no_answer_is_a_failure(events: list[bytes], done: bool, code: str) -> None:
    failure = answer(*events, done=done).failure
    assert isinstance(failure, Notice)
    assert failure.code == code


def test_the_reason_in_an_error_is_shown_on_one_line() -> None:
    failure = answer(chunk("a"), b'{"error": {"message": "out\\u001b[2J of memory\\nfor good"}}').failure
    assert failure is not None
    assert failure.text.endswith(": out\\u001b[2J of memory")
    assert failure.text.isprintable()


def test_a_stream_that_only_says_why_it_finished_is_whole() -> None:
    assert answer(chunk("a"), chunk(finish="length"), done=False).failure is None
