"""Clients that read slowly or hang up: what they do to the others, and whether a server works on for who has left."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from asked_streams import KINDS
from fairlap.errors import InvalidRequest
from fairlap.request.fields.streams import Manners
from fairlap.request.names import contestant_named
from fairlap.scenarios.streams.answers import answer_in
from fairlap.scenarios.streams.clients.client import Certificates, RawAnswer
from fairlap.scenarios.streams.clients.client_of_server import client_for
from fairlap.scenarios.streams.clients.manner import LEFT, Manner
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.race.mannered_load import share_after_hang_up
from fairlap.scenarios.streams.servers import stream_server
from fairlap.scenarios.streams.streams_found import ManneredFound
from fairlap.scenarios.streams.workload.manners import abort_named, slow_clients_named, with_manners
from fairlap.scenarios.streams.workload.sessions import Session
from machine_marks import needs
from stream_races import file_of_prompts, raced, row_of, shown_by
from stream_server import StreamingServer

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

TOKENS = 16


def asked(server: Any, *manners: Manner, tokens: int = TOKENS) -> list[RawAnswer]:
    named = stream_server(contestant_named(server.at()), chat=False, remote=False)
    client = client_for(named, Certificates().context(), tokens)
    try:
        found = [client.ask(named.body(Prompt(prompt=f"{place}"), tokens, "forced"), each)
                 for place, each in enumerate(manners)]  # fmt: skip
        codes = [None if (why := answer_in(each, named).failure) is None else why.code for each in found]
        assert codes == [LEFT if each.has_left else None for each in found]
        return found
    finally:
        client.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_hangs_up_ends_the_work_of_a_server_that_notices_and_the_next_is_answered(kind: Any) -> None:
    with kind(each_ms=5.0) as server:
        [left] = asked(server, Manner(leaves_after=3), tokens=1000)
        assert left.has_left
        written = [0, len(server.truths[0].tokens_ns)]
        while written[-1] > written[-2] and len(written) < 20:  # while it answers others, which each take 16 tokens
            [then] = asked(server, Manner())
            assert not then.has_left
            assert len(server.truths[-1].tokens_ns) == TOKENS
            written.append(len(server.truths[0].tokens_ns))
        assert 3 <= written[-1] == written[-2] < 1000


def test_one_that_reads_slowly_takes_as_long_as_its_bytes_do() -> None:
    with StreamingServer(padding=500) as server:
        [slow] = asked(server, Manner(bytes_per_s=40_000.0))
    assert (slow.ended_ns - slow.began_ns) / 1e9 > TOKENS * 500 / 40_000
    assert slow.events[-1][0] - slow.events[0][0] > 0.5e9 * TOKENS * 500 / 40_000  # while it reads, not at the end


@pytest.mark.slow
def test_the_time_in_which_a_slow_client_reads_is_not_the_servers() -> None:
    """The server has a second for an answer, and the client takes more than two to read it."""
    with StreamingServer(padding=500) as server:
        named = stream_server(contestant_named(server.at(":timeout=1s")), chat=False, remote=False)
        client = client_for(named, Certificates().context(), TOKENS)
        slow = client.ask(named.body(Prompt(prompt="a"), TOKENS, "forced"), Manner(bytes_per_s=4_000.0))
        client.close()
    assert (slow.ended_ns - slow.began_ns) / 1e9 > 2.0
    assert answer_in(slow, named).failure is None


def of_fake_times(rest_share: float) -> float | None:
    """Ask a server whose answers take 100 ms, 10 of which to the first token, and that works on for this share."""
    free_s, now_s = 0.0, 0.0

    def ask(manner: Manner) -> RawAnswer:
        nonlocal free_s, now_s
        began_s, starts_s = now_s, max(free_s, now_s)
        leaves = manner.leaves_after is not None
        now_s = starts_s + (0.01 if leaves else 0.1)
        free_s = now_s + (0.09 * rest_share if leaves else 0.0)
        events = [(round(1e9 * (starts_s + 0.01)), b""), (round(1e9 * now_s), b"")]
        return RawAnswer(round(1e9 * began_s), round(1e9 * now_s), events, has_left=leaves)

    return share_after_hang_up(ask)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_work_for_a_client_that_has_left_is_by_how_much_later_the_next_answer_comes(share: float) -> None:
    assert of_fake_times(share) == pytest.approx(share, abs=1e-6)


def found_in(folder: Path, server: StreamingServer, **asked: Any) -> tuple[ManneredFound, Any]:
    how = {"rate": None, "concurrency": 3, "tokens": TOKENS, "trial": 1.0, **asked}
    results = raced(file_of_prompts(folder), server, timeout="10s", **how)
    [shown] = shown_by(results, server)
    assert shown.manners is not None
    return shown.manners, row_of(results, server)


@pytest.mark.slow
@pytest.mark.parametrize("works_on", [False, True])
def test_who_hung_up_was_not_dropped_and_a_server_may_work_on(works_on: bool, tmp_path: Path) -> None:
    with StreamingServer(each_ms=10.0, slots=1, works_on=works_on) as server:
        found, row = found_in(tmp_path, server, abort=0.5, concurrency=2, trial=0.1)
        until_s = time.monotonic() + (60 if works_on else 0)  # on a busy machine it works on for longer than the race
        while min(len(each.tokens_ns) for each in server.truths if each.began_ns) < TOKENS:
            if time.monotonic() > until_s:
                break
            time.sleep(0.01)
        answered = [len(each.tokens_ns) for each in server.truths if each.began_ns]
    assert (row.outcome, found.failed) == ("finished", 0)
    assert 0 < found.hung_up <= found.aborting == 2
    assert (min(answered) < TOKENS) != works_on
    assert "work_after_hang_up_share" in row.scenario_figures


@pytest.mark.slow
def test_slow_clients_keep_others_waiting_where_a_server_waits_for_them(tmp_path: Path) -> None:
    """The other server leaves what they have not read to the system, and serves the next.

    Other programs keep clients waiting as well, so one of several attempts counts.
    """
    ratios = []
    for _ in range(4):
        ratio, slow_is_slower = {}, []
        for waits in (False, True):
            with StreamingServer(each_ms=1.0, slots=1, padding=4000, small_buffers=waits) as server:
                how = {"rate": 15.0, "concurrency": None, "trial": 0.7, "slow_clients": (0.3, 100_000.0)}
                found, row = found_in(tmp_path, server, **how)
            assert (found.slow, found.slow_answered, found.failed) == (3, 3, 0)
            ratio[waits] = row.scenario_figures["others_latency_ratio"].value
            slow_is_slower.append(row.scenario_figures["slow_answer_p50_ns"].value > (found.others_p50_ns or 0))
        ratios.append(ratio)
        if ratio[True] > 1.5 * ratio[False] and all(slow_is_slower):
            return
    raise AssertionError(ratios)


def test_usual_clients_alone_come_first_in_every_other_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[bool] = []
    load = Contestant.load

    def noted(self: Contestant, *asked: Any, **how: Any) -> Any:
        offered.append(bool(how["manners"]))
        return load(self, *asked, **how)

    monkeypatch.setattr(Contestant, "load", noted)
    with StreamingServer(first_ms=2.0) as server:
        raced(file_of_prompts(tmp_path), server, rate=100.0, trial=0.1, tokens=TOKENS, abort=0.3, blocks=2)
    assert offered == [False, True, True, False]


def test_exactly_the_shares_are_drawn_and_each_hangs_up_at_another_token() -> None:
    sessions = [Session(place, Prompt(prompt="a"), (TOKENS,), (0.0,)) for place in range(1000)]
    drawn = with_manners(sessions, Manners(0.1, 500.0, 0.05), 1)
    assert [each.number for each in drawn] == [each.number for each in sessions]
    assert sum(each.manner == Manner(bytes_per_s=500.0) for each in drawn) == 100
    leaving = Counter(each.manner.leaves_after for each in drawn if each.manner.leaves_after is not None)
    assert sum(leaving.values()) == 50
    assert set(leaving) <= set(range(1, TOKENS))
    assert len(leaving) > 10
    assert drawn == with_manners(sessions, Manners(0.1, 500.0, 0.05), 1)


def test_slow_clients_are_named_by_their_share_and_speed() -> None:
    assert slow_clients_named("10%") == (0.1, 1000.0)
    assert slow_clients_named("0.2:500") == (0.2, 500.0)
    for text in ("", "10", "100%", "150%", "10%:0", "10%:fast", "10%:nan"):
        with pytest.raises(InvalidRequest) as refused:
            slow_clients_named(text)
        assert "--slow-clients" in str(refused.value)


def test_clients_that_hang_up_are_named_by_their_share() -> None:
    assert abort_named("5%") == 0.05
    for text in ("", "5", "150%", "5%:500"):
        with pytest.raises(InvalidRequest) as refused:
            abort_named(text)
        assert "--abort" in str(refused.value)
