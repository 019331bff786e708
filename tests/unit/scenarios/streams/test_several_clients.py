"""Several clients share a load: together they offer exactly it, and what they measured is merged without loss."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.launch.cluster.called_program import ProgramHere
from fairlap.machine.programs.processes import process_ids
from fairlap.request.fields.server_address import ServerAddress
from fairlap.request.fields.streams import Bounds, Overload, StreamLoad
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.streams.beyond_capacity import overload_found
from fairlap.scenarios.streams.clients.client import Certificates
from fairlap.scenarios.streams.figures import figures_of, times_of
from fairlap.scenarios.streams.floor.client_limit import why_client_limits
from fairlap.scenarios.streams.race import client_group
from fairlap.scenarios.streams.race.client_group import ClientGroup, NoClientLeft
from fairlap.scenarios.streams.scenario import StreamedAnswers
from fairlap.scenarios.streams.several_clients.client_names import clients_named
from fairlap.scenarios.streams.several_clients.load_share import dealt
from fairlap.scenarios.streams.several_clients.messages import Begin, Prepare, ReadClock
from fairlap.scenarios.streams.streams_found import ClientFloor, ClientFound, Percentiles, StreamsFound
from fairlap.scenarios.streams.workload.arrivals import Arrivals
from fairlap.scenarios.streams.workload.overload import step_of
from machine_marks import needs_proc
from processes_seen import content, wait_until_empty
from scripted_clients import Clock, ScriptedClient, a_load, scripted
from stream_races import exact_quantile_ns, file_of_prompts, raced, row_of, shown_by, without_client_floor
from stream_server import StreamingServer, in_a_process

OFFSETS_NS = (0, 7_000_000_000_000, -3_000_000_000)  # started at other times


def took_ns(prompt: int) -> float:
    return random.Random(prompt).expovariate(1 / 5e6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(client_group, "now_ns", clock.now_ns)
    return clock


def group_of(programs: dict[str, ScriptedClient]) -> ClientGroup:
    return ClientGroup(lambda _line: None, dict(programs))


@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("clients", [1, 2, 3, 7, 40])
def test_shares_are_together_exactly_the_load(clients: int, users: bool) -> None:
    load = a_load(33, 10, users=users)
    shares = dealt(load, clients)
    assert len(shares) == min(clients, 10)
    places = np.concatenate([each.places for each in shares])
    assert sorted(places) == list(range(33))
    assert sum(each.share.connections for each in shares) == 10
    for each in shares:
        assert each.share.sessions == tuple(load.sessions[place] for place in each.places)
        assert (each.share.due_ns == load.due_ns[each.places]).all()
        if users:  # each user asks as often as before, give or take one
            assert abs(len(each.places) / each.share.connections - 3.3) <= 1


def test_percentiles_of_several_are_those_of_the_exact_list_of_one(clock: Clock) -> None:
    load = a_load(301)
    alone = group_of(scripted(clock, OFFSETS_NS[:1], took_ns)).offer(load)
    programs = scripted(clock, OFFSETS_NS, took_ns)
    several = group_of(programs).offer(load)
    exact_ns = np.array([took_ns(number) for number in range(301)])
    of_one, of_all = times_of(alone), times_of(several)
    for percent in (0, 1, 50, 90, 99, 99.9, 100):
        wanted_ns = np.percentile(exact_ns, percent)
        assert np.percentile(of_one["wall_ns"], percent) == pytest.approx(wanted_ns, abs=0.01)
        assert np.percentile(of_all["wall_ns"], percent) == pytest.approx(wanted_ns, abs=0.01)
    assert of_all["wall_ns"] == pytest.approx(exact_ns, abs=0.01)  # in the order in which they were drawn
    assert several.prompts.tolist() == alone.prompts.tolist() == list(range(301))
    assert [each.text for each in several.answers] == [f"text {number}" for number in range(301)]
    assert Counter(number for each in programs.values() for number in each.served) == Counter(range(301))
    for name in of_one:
        assert np.sort(of_all[name]) == pytest.approx(np.sort(of_one[name]), abs=0.01)
    one, all_ = (figures_of(each, Bounds(0.002)) for each in (alone, several))
    assert (one.counts, one.good_share) == (all_.counts, all_.good_share)
    assert all_.requests_per_s == pytest.approx(one.requests_per_s, rel=0.01)


def test_requests_of_conversations_stay_together_and_in_their_order(clock: Clock) -> None:
    load = a_load(20, turns=(1, 3, 2))
    several = group_of(scripted(clock, OFFSETS_NS, took_ns)).offer(load)
    assert several.prompts.tolist() == [each.number for each in load.sessions for _ in each.tokens]


def test_clocks_of_machines_are_compared_and_their_loads_begin_together(clock: Clock) -> None:
    programs = scripted(clock, OFFSETS_NS, took_ns)
    several = group_of(programs).offer(a_load(30))
    for each, offset_ns in zip(several.by_client, OFFSETS_NS, strict=True):
        assert abs(each.clock.offset_ns - offset_ns) <= each.clock.uncertainty_ns
        assert 60e3 < each.clock.uncertainty_ns < 70e3  # ways of 40 and 90 us
        assert each.began_ns < 2 * each.clock.uncertainty_ns
    assert len(several.by_client) == 3


def test_a_client_that_begins_late_is_late_on_the_common_clock_and_its_latencies_are_the_same(clock: Clock) -> None:
    programs = scripted(clock, OFFSETS_NS, took_ns)
    programs["host 1"].starts_late_ns = 50_000_000
    load = a_load(30)
    several = group_of(programs).offer(load)
    late_ns = several.from_ns - load.due_ns
    assert late_ns[1::3] == pytest.approx(50e6, abs=200e3)
    assert late_ns[0::3] == pytest.approx(0, abs=200e3)
    assert times_of(several)["wall_ns"] == pytest.approx([took_ns(each) for each in range(30)], abs=0.01)
    assert several.by_client[1].began_ns == pytest.approx(50e6, abs=200e3)


@pytest.mark.parametrize("dies_at", [Prepare, ReadClock])
def test_a_client_that_is_lost_before_a_load_leaves_its_share_to_the_others(clock: Clock, dies_at: type) -> None:
    programs = scripted(clock, OFFSETS_NS, took_ns)
    programs["host 2"].dies_at = dies_at
    said: list[str] = []
    group = ClientGroup(said.append, dict(programs))
    whole = group.offer(a_load(31))
    assert whole.prompts.tolist() == list(range(31))
    assert Counter(number for each in programs.values() for number in each.served) == Counter(range(31))
    assert [each.name for each in whole.by_client] == ["host 0", "host 1"]
    assert group.lost == []
    assert len(said) == 1
    assert "host 2" in said[0]


def test_a_client_that_is_lost_under_load_is_said_once_and_what_the_others_measured_is_kept(clock: Clock) -> None:
    programs = scripted(clock, OFFSETS_NS, took_ns)
    programs["host 1"].dies_at = Begin
    said: list[str] = []
    group = ClientGroup(said.append, dict(programs))
    kept = group.offer(a_load(31))
    left = [number for number in range(31) if number % 3 != 1]
    assert kept.prompts.tolist() == left == sorted(programs["host 0"].served + programs["host 2"].served)
    assert times_of(kept)["wall_ns"] == pytest.approx([took_ns(each) for each in left], abs=0.01)
    assert kept.sessions is not None
    assert kept.sessions.tolist() == left
    assert len(said) == len(group.lost) == 1
    assert "10 of 31 requests" in group.lost[0]
    later = group.offer(a_load(31))
    assert later.prompts.tolist() == list(range(31))
    programs["host 0"].dies_at = programs["host 2"].dies_at = Begin
    with pytest.raises(NoClientLeft):
        group.offer(a_load(31))


def test_more_users_than_the_clients_that_are_left_may_have_are_not_fewer_users(clock: Clock) -> None:
    programs = scripted(clock, OFFSETS_NS, took_ns)
    programs["host 1"].dies_at = programs["host 2"].dies_at = Prepare
    with pytest.raises(NoClientLeft):
        group_of(programs).offer(a_load(600, 300, users=True))
    assert group_of({"host 0": programs["host 0"]}).offer(a_load(600, 256, users=True)).prompts.size == 600


def test_figures_of_an_overload_are_of_the_requests_that_are_left(clock: Clock) -> None:
    overload = Overload(2000.0, 0.05, 0.05, 0.2)
    step = step_of(overload, 500.0, 0.05, Arrivals("constant"), 1)
    load = a_load(len(step.due_ns))
    programs = scripted(clock, OFFSETS_NS, lambda _: 2e6)
    programs["host 1"].dies_at = Begin
    kept = group_of(programs).offer(load)
    left = step.only(kept.sessions)
    assert len(left.due_ns) == len(kept.answers) < len(step.due_ns)
    assert left.before + left.during == np.count_nonzero(step.due_ns[kept.sessions] < step.ends_ns)
    assert overload_found(kept, left, overload).before_p50_ns == pytest.approx(2e6)


def test_clients_are_named_by_a_number_or_a_cluster() -> None:
    assert [clients_named(each) for each in ("4", "auto", "ray://10.0.0.5:10001")] == [
        *("4", "auto", "ray://10.0.0.5:10001")
    ]
    for text in ("0", "65", "-1", "two", "local", "ray://", "ray://host", "http://host:1"):
        with pytest.raises(InvalidRequest) as refused:
            clients_named(text)
        assert refused.value.code == "E_CLIENTS"


def test_a_plan_whose_clients_are_on_a_cluster_reaches_it_and_its_work_is_that_of_one_client() -> None:
    alone = StreamLoad("p.jsonl", "0", 8, rate_per_s=5.0)
    works = [Work("p", 1, streams=msgspec.structs.replace(alone, clients=each)) for each in ("", "2", "ray://a:1")]
    reached = [[line for line in StreamedAnswers().reaches(each) if "cluster" in line] for each in works]
    assert [len(each) for each in reached] == [0, 0, 1]
    assert "ray://a:1" in reached[2][0]
    assert len({each.id for each in works}) == 1
    assert len({each.label for each in works}) == 3


@pytest.fixture
def httpx() -> None:
    pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")


needs_httpx = pytest.mark.usefixtures("httpx")
HOW: dict[str, Any] = {"rate": 60.0, "trial": 0.5, "clients": "2"}


@pytest.fixture(autouse=True)
def known_client() -> None:
    """Measure what the client adds, unlike other tests of streams."""


@needs_httpx
def test_two_processes_measure_a_server_of_known_delays_and_ask_it_what_it_counted(tmp_path: Path) -> None:
    with in_a_process(first_ms=20.0, each_ms=1.0) as server:
        found = raced(file_of_prompts(tmp_path), server, **HOW)
    [shown], row = shown_by(found, server), row_of(found, server)
    assert shown.figures is not None
    first, second = shown.clients
    assert first.requests + second.requests == shown.figures.counts.requests == 30
    assert (first.requests, second.requests) == (15, 15)
    counts, loaded = shown.figures.counts, server.truths[-30:]
    assert Counter(each.prompt.split()[-1] for each in loaded) == Counter(map(str, shown.requests.prompts))
    assert len({each.prompt for each in loaded}) == 30 == counts.answered
    assert sum(len(each.tokens_ns) for each in loaded) == counts.tokens
    [process] = found.run.processes
    stamps = shown.requests
    exact_ns = [last - due for due, last in zip(stamps.from_ns, stamps.last_ns, strict=True) if due and last]
    timing = process.timings["wall_ns"]
    for quantile, of_row_ns in ((0.5, timing.p50_ns), (0.9, timing.p90_ns)):
        wanted_ns = exact_quantile_ns(exact_ns, quantile)
        assert of_row_ns == pytest.approx(wanted_ns, abs=1.0)
    assert timing.samples == 30
    assert min(exact_ns) >= 27e6
    for each in (first, second):
        assert abs(each.clock_offset_ns) <= each.clock_uncertainty_ns  # they share a clock
        assert each.floor is not None
        assert 20 <= each.floor.answered <= each.floor.requests
    assert row.settings["clients"].count(",") == 1
    assert [each.requests for each in row.load_clients] == [15, 15]
    assert all(each.adds_to_first_token_ns for each in row.load_clients)


@pytest.mark.slow
@needs_httpx
def test_users_of_several_clients_ask_as_many_at_once_as_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_client_floor(monkeypatch)
    with in_a_process(first_ms=30.0) as server:
        found = raced(file_of_prompts(tmp_path), server, **{**HOW, "rate": None, "concurrency": 5, "trial": 0.1})
    [shown] = shown_by(found, server)
    assert shown.figures is not None
    requests = shown.figures.counts.requests
    loaded = server.truths[-requests:]
    open_at_once = [sum(other.came_ns <= each.came_ns < other.tokens_ns[-1] for other in loaded) for each in loaded]
    assert max(open_at_once) == 5


@pytest.mark.slow
@needs_httpx
def test_a_process_that_is_killed_under_load_fails_its_turn_alone_and_the_next_has_all_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_client_floor(monkeypatch)
    started: list[ProgramHere] = []

    class Noted(ProgramHere):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            started.append(self)

    monkeypatch.setattr(client_group, "ProgramHere", Noted)
    with StreamingServer(first_ms=5.0) as server:
        asked_before = 60  # of the examination, at most; the load has 30 more

        def kill_one() -> None:
            while len(server.truths) < asked_before + 8:
                time.sleep(0.005)
            os.kill(started[1].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        found = raced(file_of_prompts(tmp_path), server, **{**HOW, "trial": 2.0}, blocks=2)
        killer.join(120)
    first, second = found.run.processes
    assert (first.outcome, first.code, second.outcome) == ("failed", "E_CLIENT_LOST", "finished")
    assert first.message.isprintable()
    shown = [each.streams for each in (first, second)]
    kept, whole = (each.figures.counts.requests for each in shown if each is not None and each.figures is not None)
    assert (kept, whole) == (60, 120)
    assert first.timings["wall_ns"].samples == 60  # what the other client measured
    row = row_of(found, server)
    assert (row.processes, row.processes_finished) == (2, 1)
    assert [each.requests for each in row.load_clients] == [180]


def marked(mark: str) -> list[int]:
    return [pid for pid in process_ids() if f"FAIRLAP_TEST_MARK={mark}".encode() in content(pid, "environ")]


@pytest.mark.slow_but("9")
@needs_httpx
@needs_proc
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_clients_whose_race_is_ended_under_load(end: signal.Signals, tmp_path: Path) -> None:
    mark = f"clients {end.name} {os.getpid()}"
    how = ("--tokens", "8", "--rate", "20", "--trial", "100s", "--blocks", "1", "--clients", "2", "--no-store")
    with StreamingServer(first_ms=5.0) as server:
        command = [sys.executable, "-m", "fairlap", "load", str(file_of_prompts(tmp_path)), "--on", server.at(), *how]
        begun = subprocess.Popen(
            command, env={**os.environ, "FAIRLAP_TEST_MARK": mark}, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        wait_until_empty(lambda: len(server.truths) < 80, within_s=90.0)
        assert len(marked(mark)) >= 3
        begun.send_signal(end)
        begun.communicate(timeout=60)
    assert begun.returncode == (130 if end == signal.SIGINT else -end)
    wait_until_empty(lambda: marked(mark))


def a_turn(*floors_ms: float, shares: tuple[float, ...] = (0.1, 0.1, 0.1)) -> ProcessResult:
    """Three clients whose first tokens take 10 ms."""
    clients = tuple(
        ClientFound(
            name=f"host {place}",
            requests=20,
            answered=20,
            client_share=share,
            first_token_p50_ns=10e6,
            whole_answer_p50_ns=50e6,
            floor=ClientFloor(
                requests=20,
                answered=20,
                first_token=Percentiles(1e6 * added_ms, 2e6 * added_ms, 3e6 * added_ms),
                per_token=None,
                whole_answer=None,
            ),
        )
        for place, (added_ms, share) in enumerate(zip(floors_ms, shares, strict=True))
    )
    process = ProcessResult(
        block=0, position=0, contestant="a", work_id="w", conditions="as-found", data_seed=0, caches="warm"
    )
    process.streams = StreamsFound(clients=clients, client_floor=clients[0].floor)
    return process


def test_a_client_that_is_its_machines_limit_is_named_though_it_hides_among_the_others() -> None:
    assert why_client_limits([a_turn(1.0, 1.0, 1.0)]) is None
    slow = why_client_limits([a_turn(1.0, 4.0, 1.0), a_turn(1.0, 5.0, 1.0)])
    assert slow is not None
    assert (slow.code, "host 1" in slow.why) == ("E_CLIENT_LIMIT", True)
    busy = why_client_limits([a_turn(1.0, 1.0, 1.0, shares=(0.2, 0.2, 0.95))])
    assert busy is not None
    assert (busy.code, "host 2" in busy.why) == ("E_CLIENT_LIMIT", True)
    assert why_client_limits([a_turn(1.0, 4.0, 1.0), a_turn(1.0, 1.0, 1.0), a_turn(1.0, 1.0, 1.0)]) is None


@needs_httpx
def test_a_server_of_this_machine_is_not_asked_from_another_one(clock: Clock) -> None:
    programs = scripted(clock, OFFSETS_NS, took_ns)
    group = ClientGroup(lambda _line: None, dict(programs), frozenset({"host 1"}))
    for address, is_refused in (("127.0.0.1", True), ("localhost", True), ("10.0.0.5", False)):
        server = replace(a_load(1).server, address=ServerAddress(address, 8000, "/v1"))
        if not is_refused:
            group.require(server, Certificates())
            continue
        with pytest.raises(InvalidRequest) as refused:
            group.require(server, Certificates())
        assert refused.value.code == "E_CLIENTS"
