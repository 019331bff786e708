"""Prompts are new unless they are asked to begin alike, conversations hold the server's own answers, users think."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import refusal
from fairlap.results.row import Row
from fairlap.scenarios.streams.equal_work.server_counters import CacheCounters, counters_in
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.workload.lengths import Lengths
from fairlap.scenarios.streams.workload.sessions import Source
from loaded_streams import loaded
from machine_marks import needs
from stream_races import counts_of, raced, row_of, shown_by
from stream_server import StreamingServer, in_a_process, words_in_common

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

SERVER = "http://127.0.0.1:8000/v1:model=m"
TOKENS = 4


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return written(tmp_path, *(f'{{"prompt": "{40 * f"number {place} "}"}}' for place in range(10)))


def written(folder: Path, *lines: str) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(lines))
    return path


def codes(row: Row) -> list[str]:
    return [each.code for each in row.warnings]


def texts_of(shared_prefix: float, seed: int, nonce: str = "nonce") -> list[list[str]]:
    prompts = tuple(Prompt(prompt=" ".join(f"p{number}" for _ in range(99))) for number in range(5))
    found = Source(prompts, None, Lengths(1, 1), shared_prefix, nonce).sessions(10, seed)
    return [str(each.first.prompt).split() for each in found]


def in_common(texts: list[list[str]]) -> list[int]:
    pairs = [(a, b) for place, a in enumerate(texts) for b in texts[:place]]
    return [words_in_common(*pair) for pair in pairs]


def test_no_prompt_begins_as_another_in_its_block_in_others_or_in_another_race() -> None:
    texts = texts_of(0.0, 1) + texts_of(0.0, 2) + texts_of(0.0, 1, "other")
    assert set(in_common(texts)) == {0}
    assert {len(each) for each in texts} == {100}
    assert texts_of(0.0, 1) == texts_of(0.0, 1)


@pytest.mark.parametrize("share", [0.3, 0.75])
def test_a_shared_prefix_is_the_share_of_each_prompt_that_was_asked_for(share: float) -> None:
    texts = texts_of(share, 1) + texts_of(share, 2)
    [length] = {len(each) for each in texts}
    assert {round(common / length, 2) for common in in_common(texts)} == {share}


def test_prompts_are_sent_as_they_are_where_all_of_them_is_shared() -> None:
    assert {tuple(each) for each in texts_of(1.0, 1)} == {(f"p{number}",) * 99 for number in range(5)}


@pytest.mark.slow_but("0.3-0.2")
@pytest.mark.parametrize(("share", "least", "most"), [(None, 0.0, 0.0), (0.3, 0.2, 0.31), (1.0, 0.8, 1.0)])
def test_cached_tokens_are_counted_and_more_than_asked_for_is_a_warning(
    share: float | None, least: float, most: float, prompts: Path, servers: ExitStack
) -> None:
    server = servers.enter_context(StreamingServer(counts_cache=True))
    found = raced(prompts, server, rate=400.0, shared_prefix=share, tokens=TOKENS)
    counts, row = counts_of(found, server), row_of(found, server)
    assert counts.prompt_tokens
    assert counts.cached_tokens is not None
    assert least <= counts.cached_tokens / counts.prompt_tokens <= most
    assert least <= row.scenario_figures["cached_prompt_tokens_share"].value <= most
    assert codes(row).count("W_WARM_CACHE") == (2 if share == 1 else 1)  # its cache was seen before the load too


@pytest.mark.slow_but("0.3-0.2")
@pytest.mark.parametrize(("share", "least", "most"), [(0.3, 0.2, 0.31), (1.0, 0.8, 1.0)])
def test_cached_tokens_that_only_prometheus_is_shown_are_those_of_the_turn(
    share: float, least: float, most: float, prompts: Path, servers: ExitStack
) -> None:
    server = servers.enter_context(StreamingServer(metrics=True))
    found = raced(prompts, server, rate=400.0, shared_prefix=share, tokens=TOKENS)
    row, words = row_of(found, server), [len(body["prompt"].split()) for _, _, body in server.requests]
    assert counts_of(found, server).prompt_tokens == sum(words[-counts_of(found, server).requests :])
    assert least <= row.scenario_figures["cached_prompt_tokens_share"].value <= most
    assert ("W_WARM_CACHE" in codes(row)) == (share == 1)


SGLANG = b"""# HELP sglang:prompt_tokens_total Number of prefill tokens processed.
sglang:prompt_tokens_total{model_name="m"} 4.0e3
sglang:cached_tokens_total{model_name="m",cache_source="device"} 1000 1732000000000
sglang:cached_tokens_total{model_name="m",cache_source="host"} 24.0
sglang:cache_hit_rate{model_name="m"} 0.25
"""


def test_counters_are_added_up_over_their_series_and_what_is_none_is_none() -> None:
    found = counters_in(SGLANG)
    assert found == CacheCounters(4000.0, 1024.0)
    assert found.since(CacheCounters(1000.0, 1000.0)) == CacheCounters(3000.0, 24.0)
    assert found.since(found) is None
    assert found.since(CacheCounters(5000.0, 0.0)) is None  # it restarted
    for text in (
        b"",
        b"{}",
        b"\xff\n<html>",
        b"vllm:prefix_cache_queries_total many",
        b"vllm:prefix_cache_hits_total 3",
    ):
        assert counters_in(text) is None


def test_a_server_that_counts_no_cached_tokens_has_none(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer())
    found = raced(prompts, server, tokens=TOKENS)
    assert counts_of(found, server).cached_tokens is None
    assert "cached_prompt_tokens_share" in row_of(found, server).scenario_absent
    assert "W_WARM_CACHE" not in codes(row_of(found, server))


CONVERSATION = '{"messages": [{"role": "system", "content": "Be brief"}], "turns": ["Hi", "Why", "So"]}'


@pytest.mark.parametrize("how", [{"rate": 50.0}, {"rate": None, "concurrency": 2, "think": 0.002}])
def test_messages_of_a_conversation_grow_by_the_answers_of_the_server(
    how: dict[str, Any], tmp_path: Path, servers: ExitStack
) -> None:
    server = servers.enter_context(StreamingServer(counts_cache=True, first_ms=1.0))
    found = raced(written(tmp_path, CONVERSATION), server, trial=0.05, tokens=TOKENS, **how)
    counts, row = counts_of(found, server), row_of(found, server)
    assert counts.answered == counts.requests > 0
    assert counts.requests % 3 == 0
    assert row.outcome == "finished"
    assert row.judged_by == "time of an answer"
    chats = [body["messages"] for path, _, body in server.requests[-counts.requests :] if "chat" in path]
    assert sorted(len(each) for each in chats) == sorted([2, 4, 6] * (counts.requests // 3))
    for chat in (each for each in chats if len(each) == 6):
        assert [each["role"] for each in chat] == ["system", *["user", "assistant"] * 2, "user"]
        assert [each["content"] for each in chat if each["role"] == "user"] == ["Hi", "Why", "So"]
        said = [each["content"] for each in chat if each["role"] == "assistant"]
        assert said == 2 * ["".join(server._words(chat[0]["content"], TOKENS, ""))]
        assert chat[:4] in chats
    assert counts.cached_tokens is not None
    assert 0.3 < counts.cached_tokens / counts.prompt_tokens < 1
    assert codes(row).count("W_WARM_CACHE") <= 1


def test_what_follows_a_turn_without_an_answer_fails_like_it(tmp_path: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(fault="429", fault_from=20))
    found = raced(written(tmp_path, CONVERSATION), server, rate=50.0, trial=0.02, tokens=TOKENS)
    counts = counts_of(found, server)
    assert counts.requests == 3 * 10
    assert counts.failed == {"E_STREAM_BUSY": counts.requests - counts.answered}
    assert row_of(found, server).code == "E_DROPPED_REQUESTS"


def test_answers_of_conversations_that_parted_are_not_compared(tmp_path: Path, servers: ExitStack) -> None:
    both = [servers.enter_context(StreamingServer(words=words)) for words in ("a", "b")]
    found = raced(written(tmp_path, CONVERSATION), *both, rate=None, concurrency=2, trial=0.01, tokens=TOKENS)
    [compared] = [each.agreement for server in both for each in shown_by(found, server) if each.agreement is not None]
    assert compared.identical == 0
    assert compared.prompts == min(counts_of(found, server).requests for server in both) // 3


def test_a_user_asks_when_it_has_thought_and_its_request_counts_from_then(tmp_path: Path) -> None:
    """A server of one slot serves users who think far too little for it: they wait, and the wait counts."""
    apart_ns = list[float]()
    while not apart_ns or (apart_ns[-1] >= 20e6 and len(apart_ns) < 5):  # other programs come between the two
        with in_a_process(each_ms=1.0, slots=1) as server:
            served = loaded(server, tmp_path, np.zeros(40), 4, concurrency=4, think=0.005)
        began_ns = np.sort(served.from_ns + served.lateness_ns)
        assert (served.lateness_ns > -served.uncertainty_ns).all()
        came_ns = np.sort([each.came_ns for each in server.truths[-40:]])
        between_ns = came_ns - came_ns[0] - (began_ns - began_ns[0])
        apart_ns.append(float(np.median(np.abs(between_ns - np.median(between_ns)))))
        took_ns = served.last_ns - served.from_ns
        assert np.median(took_ns[8:]) > 2.5 * 10e6
        assert served.busy_until_ns < served.last_ns.max()
    assert apart_ns[-1] < 20e6


def test_ctrl_c_does_not_wait_until_users_have_thought(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer())
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        raced(prompts, server, rate=None, concurrency=3, think=600.0, trial=None)
    assert time.monotonic() - began_s < 60
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_answers_have_the_lengths_that_were_drawn_and_others_are_noticed(prompts: Path, servers: ExitStack) -> None:
    honest = servers.enter_context(StreamingServer())
    cheat = servers.enter_context(StreamingServer(fault="short"))
    found = raced(prompts, honest, cheat, tokens=Lengths(4, 12), rate=200.0)
    asked = [body["max_tokens"] for _, _, body in honest.requests[-20:]]
    assert 4 <= min(asked) < max(asked) <= 12
    assert [row_of(found, server).code for server in (honest, cheat)] == ["", "E_OTHER_LENGTH"]
    assert counts_of(found, honest).tokens == counts_of(found, honest).asked_tokens == sum(asked)


@pytest.mark.parametrize(
    ("line", "options", "code"),
    [
        ('{"prompt": "a"}', ["--rate", 5, "--tokens", 4, "--think", "20s"], "E_LOAD"),
        ('{"prompt": "a"}', ["--concurrency", 5, "--tokens", 4, "--arrivals", "constant"], "E_LOAD"),
        ('{"prompt": "a"}', ["--rate", 5, "--tokens", 4, "--arrivals", "gamma:cv=0"], "E_LOAD"),
        ('{"prompt": "a"}', ["--rate", 5, "--tokens", "9-4"], "E_LOAD"),
        ('{"prompt": "a"}', ["--rate", 5, "--tokens", 4, "--shared-prefix", "130%"], "E_LOAD"),
        ('{"prompt": "a"}', ["--rate", 5, "--tokens", 4, "--shared-prefix", "nan"], "E_LOAD"),
        ('{"prompt": "a", "tokens": 4}\n{"prompt": "b"}', ["--rate", 5], "E_LOAD"),
        ('{"turns": ["a", "b"], "tokens": 4}', ["--first-token", "1s"], "E_LOAD"),
        ('{"turns": []}', ["--rate", 5, "--tokens", 4], "E_PROMPTS"),
        ('{"turns": ["a", ""]}', ["--rate", 5, "--tokens", 4], "E_PROMPTS"),
        ('{"prompt": "a", "turns": ["b"]}', ["--rate", 5, "--tokens", 4], "E_PROMPTS"),
        ('{"prompt": "a", "tokens": 0}', ["--rate", 5], "E_PROMPTS"),
    ],
)
def test_what_cannot_be_honoured_is_refused(line: str, options: list[Any], code: str, tmp_path: Path) -> None:
    assert refusal("load", written(tmp_path, line), "--on", SERVER, *options).code == code
