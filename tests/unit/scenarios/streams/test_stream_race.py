"""Servers that stream race for equal work: who is faster is found, and who cheats is named and not ranked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from command_line import fairlap, here, invoke
from fairlap.request.names import Contestants
from fairlap.scenarios.streams.asked import streams_asked
from fairlap.scenarios.streams.document import document_of
from fairlap.scenarios.streams.race import StreamRace
from fairlap.scenarios.streams.result import StreamRow, StreamsResult
from published_schemas import checked
from stream_server import StreamingServer

pytest.importorskip("httpx", reason="needs the extra streams; `make test` installs it and runs this")

TOKENS = 8


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(f'{{"prompt": "number {place}"}}\n' for place in range(40)))
    return path


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def raced(prompts: Path, *servers: StreamingServer, **asked: Any) -> StreamsResult:
    contestants = Contestants(",".join(server.at(":timeout=2s") for server in servers))
    how = {"rate": 200.0, "trial": 0.1, "blocks": 1, "seed": 1, **asked}
    return StreamRace(streams_asked(prompts, contestants, tokens=TOKENS, **how)).run()


def row_of(found: StreamsResult, server: StreamingServer) -> StreamRow:
    return next(row for row in found.rows if row.name.startswith(server.at()))


def codes(row: StreamRow) -> set[str]:
    return {each.code for each in row.warnings} | ({row.why_not.code} if row.why_not else set())


CHEATS: dict[str, dict[str, Any]] = {
    "E_KEPT_ANSWERS": {"first_ms": 4.0, "each_ms": 2.0, "remembers": "answers"},
    "W_WARM_CACHE": {"first_ms": 12.0, "remembers": "prefixes"},
    "E_OTHER_LENGTH": {"fault": "short"},
    "W_SHORT_ANSWERS": {"fault": "stops"},
    "W_REPEATED_ANSWERS": {"fault": "same answers"},
    "E_STREAM_CUT": {"fault": "unfinished"},
    "E_STREAM_STATUS": {"fault": "429"},
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
    assert codes(row_of(found, honest)) <= {"W_BUSY_CLIENT"}
    assert (row_of(found, other).why_not is not None) == (code[0] == "E" or code == "W_SHORT_ANSWERS")


def test_requests_that_fail_under_load_are_counted_by_code_and_the_race_goes_on(
    prompts: Path, servers: ExitStack
) -> None:
    honest = servers.enter_context(StreamingServer())
    other = servers.enter_context(StreamingServer(fault="cut", fault_from=30, fault_every=2))
    found = raced(prompts, other, honest)
    figures = row_of(found, other).figures
    assert figures is not None
    assert figures.failed["E_STREAM_CUT"] == figures.requests - figures.answered > 0
    assert codes(row_of(found, other)) >= {"E_DROPPED_REQUESTS"}
    assert found.rows[0].name.startswith(honest.at())
    assert found.rows[0].why_not is None


def test_a_few_requests_that_fail_are_a_warning(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(fault="429", fault_from=50, fault_every=100))
    [row] = raced(prompts, server, rate=600.0, trial=0.2).rows
    assert row.figures is not None
    assert row.figures.failed == {"E_STREAM_STATUS": 1}
    assert row.why_not is None
    assert "W_FAILED_REQUESTS" in codes(row)


def test_fields_that_a_server_refuses_are_left_out(prompts: Path, servers: ExitStack) -> None:
    plain = servers.enter_context(StreamingServer(refused=("ignore_eos", "stream_options"), usage="none"))
    counting = servers.enter_context(StreamingServer(refused=("min_tokens",), usage="end"))
    found = raced(prompts, plain, counting)
    assert [
        (row.tokens_forced, row.tokens_counted_by) for row in (row_of(found, each) for each in (plain, counting))
    ] == [
        (False, "events"),
        (False, "usage"),
    ]
    assert all(row.why_not is None for row in found.rows)
    assert "stream_options" not in plain.requests[-1][2]
    assert plain.requests[-1][2]["max_tokens"] == TOKENS


@pytest.mark.parametrize("how", [{"rate": 100.0}, {"rate": None, "concurrency": 4, "trial": 0.01}])
def test_a_much_slower_server_is_found_slower(how: dict[str, Any], prompts: Path, servers: ExitStack) -> None:
    fast, slow = (servers.enter_context(StreamingServer(first_ms=ms)) for ms in (4.0, 80.0))
    found = raced(prompts, slow, fast, **{**how, "blocks": 6})
    assert [row.name.startswith(fast.at()) for row in found.rows] == [True, False]
    [compared] = found.comparisons
    assert compared.verdict.value in ("faster", "slower")
    assert found.standing is not None
    assert found.standing.winner == found.rows[0].name
    same = found.rows[1].agreement or found.rows[0].agreement
    assert same is not None
    assert same.identical == same.prompts > 0


def test_the_same_requests_reach_every_server(prompts: Path, servers: ExitStack) -> None:
    both = [servers.enter_context(StreamingServer()) for _ in range(2)]
    raced(prompts, *both, blocks=2)
    loaded = [sorted(body["prompt"] for _, _, body in server.requests[-2 * 20 :]) for server in both]
    assert loaded[0] == loaded[1]
    assert len({prompt.partition(" ")[0] for prompt in loaded[0]}) == 2 * 20  # none begins as another


@pytest.mark.slow
def test_the_largest_rate_of_a_server_of_known_speed_is_found(prompts: Path, servers: ExitStack) -> None:
    """One slot of 10 ms serves less than 100 a second."""
    slot = servers.enter_context(StreamingServer(each_ms=10 / (TOKENS - 1), slots=1))
    found = raced(prompts, slot, rate=None, first_token=0.3, per_token=0.1, trial=0.5, workers=20)
    [row] = found.rows
    rate = found.judged_value(row)
    assert rate is not None
    assert 30 < rate < 100
    assert row.figures is not None
    assert row.figures.good_share is not None
    assert row.figures.good_share >= 0.99


def test_no_rate_that_meets_the_bounds_is_said(prompts: Path, servers: ExitStack) -> None:
    slow = servers.enter_context(StreamingServer(first_ms=30.0))
    found = raced(prompts, slow, rate=None, first_token=0.001, trial=0.1, workers=4)
    assert codes(found.rows[0]) >= {"E_NO_RATE"}


def test_a_client_that_is_too_busy_says_so(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(first_ms=20.0))
    found = raced(prompts, server, workers=1, rate=400.0)
    assert "W_BUSY_CLIENT" in codes(found.rows[0])


def test_the_command_prints_rows_as_text_and_as_json(
    prompts: Path, servers: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "plain-words-that-no-pattern-knows"
    monkeypatch.setenv("KEY_OF_SERVER", secret)
    server = servers.enter_context(StreamingServer(key=secret, first_ms=1.0))
    file = tmp_path / "streams.json"
    options = ("--tokens", TOKENS, "--concurrency", 2, "--trial", "50ms", "--blocks", 1, "--quiet", "-o", file)
    done = here("load", prompts, "--on", server.at(":key_from=KEY_OF_SERVER"), *options)
    assert (done.returncode, done.stderr) == (0, "")
    document = checked(file.read_text())
    [row] = document["rows"]
    assert document["schema"] == "fairlap.streams/1"
    assert (row["tokens_forced"], row["tokens_counted_by"]) == (True, "events' usage")
    assert row["certificates"] == "none, by http"
    assert row["figures"]["tokens"] == TOKENS * row["figures"]["answered"] > 0
    assert secret not in done.stdout + file.read_text()


def test_a_race_without_an_answer_ends_with_status_1_and_a_line_for_each(prompts: Path, servers: ExitStack) -> None:
    faulty = [servers.enter_context(StreamingServer(fault=fault)) for fault in ("500", "rubbish")]
    names = ",".join(server.at() for server in faulty)
    done = invoke("load", prompts, "--on", names, "--tokens", 4, "--rate", 50, "--quiet", "--json")
    assert done.exit_code == 1
    document = checked(done.stdout)
    assert {row["not_ranked"]["code"] for row in document["rows"]} == {"E_STREAM_STATUS", "E_STREAM_EVENT"}
    assert document["why_no_verdict"]


def test_a_document_has_no_number_where_nothing_was_measured(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(fault="500"))
    [row] = document_of(raced(prompts, server)).rows
    assert (row.judged, row.figures, row.alone_ns, row.place) == (None, None, None, "")


@pytest.mark.slow
@pytest.mark.sanitized
def test_ctrl_c_prints_the_blocks_so_far(prompts: Path, servers: ExitStack) -> None:
    server = servers.enter_context(StreamingServer(first_ms=5.0))
    length = ("--tokens", 4, "--rate", 50, "--trial", "100ms", "--blocks", 1000)
    interrupt = "timeout --preserve-status --signal INT 6"
    done = fairlap("load", prompts, "--on", server.at(), *length, "--json", "--quiet", before=interrupt)
    document = checked(done.stdout)
    assert (done.returncode, document["interrupted"]) == (130, True)
    assert 0 < document["blocks"] < 1000
    assert document["rows"][0]["figures"]["answered"] > 0


def test_a_server_that_dies_in_the_race_is_not_ranked_and_the_other_is(prompts: Path, servers: ExitStack) -> None:
    honest = servers.enter_context(StreamingServer())
    dying = servers.enter_context(StreamingServer(fault="cut", fault_from=17))
    found = raced(prompts, honest, dying, blocks=2)
    assert [row.why_not is None for row in found.rows] == [True, False]
    assert codes(found.rows[1]) >= {"E_DROPPED_REQUESTS"}
    assert found.rows[1].block_figures_ns == (None, None)
