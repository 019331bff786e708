"""Servers that stream race for equal work: who is faster is found, and who cheats is named and not ranked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_streams import KINDS
from command_line import fairlap, invoke
from fairlap.scenarios.streams.clients.client import StreamClient
from fairlap.scenarios.streams.clients.grpc_client import GrpcStreamClient
from fairlap.scenarios.streams.issue import serve
from grpc_stream_server import GrpcStreamingServer
from machine_marks import needs
from published_schemas import checked
from stream_races import OF_A_BUSY_MACHINE, TOKENS, codes, counts_of, raced, raced_by_name, row_of, shown_by
from stream_server import StreamingServer

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")


CHEATS: dict[str, dict[str, Any]] = {
    "E_KEPT_ANSWERS": {"first_ms": 100.0, "each_ms": 2.0, "remembers": "answers"},
    "W_WARM_CACHE": {"first_ms": 100.0, "remembers": "prefixes"},
    "E_OTHER_LENGTH": {"fault": "short"},
    "W_SHORT_ANSWERS": {"fault": "stops"},
    "W_REPEATED_ANSWERS": {"fault": "same answers"},
    "E_STREAM_CUT": {"fault": "unfinished"},
    "E_STREAM_BUSY": {"fault": "429"},
    "W_TOKENS_NOT_COUNTED": {"usage": "none"},
    "W_OTHER_ANSWERS": {"words": "other"},
}


@pytest.mark.parametrize("code", CHEATS)
def test_what_a_server_plants_is_named_and_an_honest_one_is_not_accused(
    code: str, prompts: Path, servers: ExitStack
) -> None:
    honest = servers.enter_context(StreamingServer(first_ms=2.0))
    other = servers.enter_context(StreamingServer(**CHEATS[code]))
    found = raced(prompts, honest, other)
    assert code in codes(row_of(found, other))
    assert codes(row_of(found, honest)) <= OF_A_BUSY_MACHINE
    assert row_of(found, honest).outcome == "finished"
    assert (row_of(found, other).outcome != "finished") == (code[0] == "E" or code == "W_SHORT_ANSWERS")


def test_less_than_half_of_the_text_is_other_work_where_tokens_are_not_counted(
    prompts: Path, servers: ExitStack
) -> None:
    honest, cheat = (servers.enter_context(StreamingServer(usage="none", fault=fault)) for fault in ("", "one token"))
    found = raced(prompts, honest, cheat)
    assert [row_of(found, server).code for server in (honest, cheat)] == ["", "E_OTHER_LENGTH"]


def test_an_answer_that_is_cut_for_another_request_is_not_whole_where_others_say_how_they_end(
    prompts: Path, servers: ExitStack
) -> None:
    """The rest of it is left out, and the end of the stream is said as usual."""
    honest = servers.enter_context(StreamingServer(usage="none"))
    cheat = servers.enter_context(StreamingServer(usage="none", fault="interrupted", fault_from=20, fault_every=3))
    found = raced(prompts, honest, cheat)
    assert [row_of(found, server).code for server in (honest, cheat)] == ["", "E_OTHER_LENGTH"]
    assert 0 < counts_of(found, cheat).wrong < counts_of(found, cheat).answered


FAULTS = {
    StreamingServer: "429,500,rubbish,reset,unfinished,silent",
    GrpcStreamingServer: "UNAVAILABLE,INTERNAL,rubbish,cut,unfinished,silent",
}


@pytest.mark.slow_but("http")
@pytest.mark.parametrize("kind", KINDS)
def test_requests_that_fail_under_load_are_counted_by_code_and_the_race_goes_on(
    kind: Any, prompts: Path, servers: ExitStack
) -> None:
    honest = servers.enter_context(kind())
    other = servers.enter_context(kind(fault=FAULTS[kind], fault_from=30, fault_every=2))
    found = raced_by_name(prompts, other.at(":timeout=1s"), honest.at(":timeout=30s"), trial=0.2)
    counts = counts_of(found, other)
    assert {*counts.failed} == {f"E_STREAM_{name}" for name in ("BUSY", "STATUS", "EVENT", "CUT", "TIMEOUT")}
    assert counts.failed["E_STREAM_CUT"] > counts.failed["E_STREAM_BUSY"] > 0  # of two faults
    assert sum(counts.failed.values()) == counts.requests - counts.answered
    assert codes(row_of(found, other)) >= {"E_DROPPED_REQUESTS"}
    assert found.rows[0].contestant.startswith(honest.at())
    assert found.rows[0].outcome == "finished"


CLIENTS: dict[type, Any] = {StreamingServer: StreamClient, GrpcStreamingServer: GrpcStreamClient}


def until(happened: Callable[[], bool]) -> None:
    while not happened():
        time.sleep(0.005)


@pytest.mark.slow_but("http")
@pytest.mark.parametrize("kind", KINDS)
def test_a_restart_in_the_middle_of_a_load_is_counted_and_named(kind: Any, prompts: Path) -> None:
    with kind(first_ms=1.0) as first:
        port = first.port
    answers: list[Any] = []
    client, has_server = CLIENTS[kind], threading.Event()
    ask = client.ask
    has_server.set()

    def noted(*asked: Any) -> Any:
        has_server.wait()
        raw = ask(*asked)
        answers.append(raw)
        return raw

    def load(*asked: Any, **how: Any) -> Any:
        answers.clear()
        restarting.start()
        return serve(*asked, **how)

    def restart() -> None:
        """After some answers of the load; and again when some requests have found no server."""
        until(lambda: len(answers) > 10)
        server.__exit__(None, None, None)
        until(lambda: sum(each.failure is not None for each in answers) > 2)
        has_server.clear()  # however long a busy machine takes, the rest of the load is for the second one
        second.__enter__()
        has_server.set()

    server, second = kind(port=port, first_ms=1.0), kind(port=port, first_ms=1.0)
    restarting = threading.Thread(target=restart)
    with pytest.MonkeyPatch.context() as patch, server:
        patch.setattr("fairlap.scenarios.streams.several_clients.load_share.serve", load)
        patch.setattr(client, "ask", noted)
        found = raced_by_name(prompts, server.at(":timeout=20s"), rate=40.0, trial=1.5, workers=4)
        restarting.join()
    second.__exit__(None, None, None)
    counts = counts_of(found, server)
    assert counts.turns_away == 1
    assert counts.failed["E_SERVER"] > 1
    assert counts.answered > 10
    assert second.truths
    assert "W_SERVER_AWAY" in codes(row_of(found, server))


def test_a_few_requests_that_fail_are_a_warning(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(fault="429", fault_from=50, fault_every=100))
    found = raced(prompts, server, rate=600.0, trial=0.2)
    assert counts_of(found, server).failed == {"E_STREAM_BUSY": 1}
    assert row_of(found, server).outcome == "finished"
    assert "W_FAILED_REQUESTS" in codes(row_of(found, server))


def test_repeated_tokens_are_not_penalised_unless_a_server_knows_no_such_field(
    prompts: Path, servers: ExitStack
) -> None:
    knows, strict = (
        servers.enter_context(StreamingServer()),
        servers.enter_context(StreamingServer(refused=("repeat_penalty",))),
    )
    found = raced(prompts, knows, strict)
    assert knows.requests[-1][2]["repeat_penalty"] == 1.0
    assert "repeat_penalty" not in strict.requests[-1][2]
    assert [row_of(found, each).settings["length"] for each in (knows, strict)] == ["forced", "forced"]


def test_fields_that_a_server_refuses_are_left_out(prompts: Path, servers: ExitStack) -> None:
    plain = servers.enter_context(StreamingServer(refused=("ignore_eos", "stream_options"), usage="none"))
    counting = servers.enter_context(StreamingServer(refused=("min_tokens",), usage="end"))
    found = raced(prompts, plain, counting)
    settings = [row_of(found, each).settings for each in (plain, counting)]
    assert [(each["length"], each["tokens counted by"]) for each in settings] == [
        ("not forced", "events"),
        ("not forced", "usage"),
    ]
    assert all(row.outcome == "finished" for row in found.rows)
    assert "stream_options" not in plain.requests[-1][2]
    assert plain.requests[-1][2]["max_tokens"] == TOKENS


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"rate": 100.0}, {"rate": None, "concurrency": 4, "trial": 0.01}])
def test_a_much_slower_server_is_found_slower(how: dict[str, Any], prompts: Path, servers: ExitStack) -> None:
    fast, slow = (servers.enter_context(StreamingServer(first_ms=ms)) for ms in (4.0, 200.0))
    found = raced(prompts, slow, fast, **{**how, "blocks": 6})
    assert [(row.place, row.contestant.startswith(fast.at())) for row in found.rows] == [("1", True), ("2", False)]
    assert found.rows[1].verdict == "slower"
    [same] = [row.scenario_figures["identical_answers_share"] for row in found.rows if row.scenario_figures.keys()
              >= {"identical_answers_share"}]  # fmt: skip
    assert same.value == 1
    first = next(each for each in found.work_results[0].other_quantities if each.metric.name == "time to first token")
    assert [each.verdict.value for each in first.comparisons] in (["faster"], ["slower"])


@pytest.mark.slow
def test_a_row_has_each_quantity_with_an_interval_that_holds_what_the_stamps_show(
    prompts: Path, servers: ExitStack
) -> None:
    server = servers.enter_context(StreamingServer(first_ms=3.0, each_ms=1.0))
    found = raced(prompts, server, rate=400.0, trial=0.25, blocks=6, first_token=0.05)
    stamps = [each.requests for each in shown_by(found, server)]
    first_ms, answer_ms, answered_per_s, tokens_per_s, good = [], [], [], [], []
    for each in stamps:
        due, first, last = (np.array(times, float) for times in (each.from_ns, each.first_ns, each.last_ns))
        took_s = (last.max() - due.min()) / 1e9
        first_ms.append(np.median(first - due) / 1e6)
        answer_ms.append(np.median(last - due) / 1e6)
        answered_per_s.append(len(due) / took_s)
        tokens_per_s.append(sum(each.tokens) / took_s)
        good.append(float(np.mean(first - due <= 50e6)))
    row = row_of(found, server)
    shown = (
        (row.time_to_first_token_ns, 1e6 * np.array(first_ms)),
        (row.latency_p50_ns, 1e6 * np.array(answer_ms)),
        (row.throughput_per_s, np.array(answered_per_s)),
        (row.tokens_per_s, np.array(tokens_per_s)),
    )
    for estimate, by_block in shown:
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= np.median(by_block) <= estimate.high
        assert by_block.min() <= estimate.value * 1.001
        assert estimate.value <= by_block.max() * 1.001
    assert row.judged == row.latency_p50_ns
    assert row.judged_by == "time of an answer"
    per_user, each_ns = row.tokens_per_prompt_per_s, row.time_per_output_token_ns
    assert per_user is not None
    assert each_ns is not None
    assert per_user.value * each_ns.value == pytest.approx(1e9, rel=0.05)
    assert min(good) <= row.scenario_figures["good_share"].value * 1.001 <= max(good) * 1.002
    assert set(row.scenario_figures) >= {"first_token_p90_ns", "first_token_p99_ns", "between_tokens_p50_ns"}


def test_a_percentile_of_too_few_requests_is_absent_with_the_reason(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer())
    row = row_of(raced(prompts, server, trial=0.01), server)
    assert (row.latency_p90_ns is None, row.latency_p99_ns, "100" in row.absent["latency_p99_ns"]) == (
        False,
        None,
        True,
    )
    assert {"first_token_p99_ns", "goodput_per_s"} <= row.scenario_absent.keys()


@pytest.mark.slow
def test_the_same_requests_reach_every_server(prompts: Path, servers: ExitStack) -> None:
    both = [servers.enter_context(StreamingServer()) for _ in range(2)]
    found = raced(prompts, *both, blocks=2)
    [count] = {counts_of(found, server).requests for server in both}
    loaded = [sorted(body["prompt"] for _, _, body in server.requests[-count:]) for server in both]
    assert loaded[0] == loaded[1]
    assert len({prompt.partition(" ")[0] for prompt in loaded[0]}) == count  # none begins as another


@pytest.mark.slow
def test_the_largest_rate_of_a_server_of_known_speed_is_found(prompts: Path, servers: ExitStack) -> None:
    """One slot of 10 ms serves less than 100 a second."""
    slot = servers.enter_context(StreamingServer(each_ms=10 / (TOKENS - 1), slots=1))
    found = raced(prompts, slot, rate=None, first_token=0.3, per_token=0.1, trial=0.5, workers=20, users=999, think=2.0)
    row = row_of(found, slot)
    assert row.judged is not None
    assert row.largest_rate_per_s == row.judged
    assert 30 < row.judged.value < 100
    [stamps] = [each.requests for each in shown_by(found, slot)]
    answers_s = np.subtract(np.array(stamps.last_ns, float), np.array(stamps.from_ns, float)) / 1e9
    assert row.users_per_instance is not None
    assert row.users_per_instance.value == pytest.approx(row.judged.value * (2.0 + np.nanmean(answers_s)))
    assert row.instances is not None
    assert row.instances.value == np.ceil(999 / row.users_per_instance.value)
    assert row.scenario_figures["good_share"].value >= 0.99


@pytest.mark.slow
def test_no_rate_that_meets_the_bounds_is_said(prompts: Path, servers: ExitStack) -> None:
    slow = servers.enter_context(StreamingServer(first_ms=30.0))
    found = raced(prompts, slow, rate=None, first_token=0.001, trial=0.1, workers=4)
    assert codes(row_of(found, slow)) >= {"E_NO_RATE"}


def test_a_client_that_is_too_busy_says_so(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(first_ms=20.0))
    found = raced(prompts, server, workers=1, rate=400.0)
    assert "W_BUSY_CLIENT" in codes(row_of(found, server))


def test_a_race_without_an_answer_ends_with_status_1_and_a_line_for_each(prompts: Path, servers: ExitStack) -> None:
    faulty = [servers.enter_context(StreamingServer(fault=fault)) for fault in ("500", "rubbish")]
    names = ",".join(server.at() for server in faulty)
    done = invoke("load", prompts, "--on", names, "--tokens", 4, "--rate", 50, "--quiet", "--json", "--no-store")
    assert done.exit_code == 1
    document = checked(done.stdout)
    assert {row["code"] for row in document["rows"]} == {"E_STREAM_STATUS", "E_STREAM_EVENT"}
    assert all(row["judged"] is None for row in document["rows"])
    assert document["ended_early"] == "no server answers"


@pytest.mark.slow
@pytest.mark.sanitized
def test_ctrl_c_keeps_the_blocks_so_far(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(first_ms=5.0))
    length = ("--tokens", 4, "--rate", 50, "--trial", "100ms", "--blocks", 1000)
    interrupt = "timeout --preserve-status --signal INT 10"
    done = fairlap("load", prompts, "--on", server.at(), *length, "--json", "--quiet", before=interrupt)
    document = checked(done.stdout)
    assert done.returncode == 130
    assert 0 < len(document["processes"]) < 1000
    assert document["processes"][0]["streams"]["figures"]["counts"]["answered"] > 0


def test_a_server_that_dies_in_the_race_is_not_ranked_and_the_other_is(prompts: Path, servers: ExitStack) -> None:
    honest = servers.enter_context(StreamingServer())
    dying = servers.enter_context(StreamingServer(fault="cut", fault_from=17))
    found = raced(prompts, honest, dying, blocks=2)
    assert [row.outcome for row in found.rows] == ["finished", "failed"]
    assert codes(found.rows[1]) >= {"E_DROPPED_REQUESTS"}
    assert found.rows[1].judged is None
