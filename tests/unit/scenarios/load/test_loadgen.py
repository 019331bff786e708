"""The real LoadGen against a contestant whose service time is known."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.request.fields.load import Scenario
from fairlap.scenarios.load import loadgen_messages
from fairlap.scenarios.load.loadgen import path_misses_bound, run_loadgen
from fairlap.scenarios.load.loadgen_logs import ACCURACY, DETAIL, SUMMARY, answers_in, result_in
from fairlap.scenarios.load.loadgen_messages import (
    BOUNDS,
    DroppedRequests,
    LoadGenFailed,
    LoadGenResult,
    require_loadgen,
)
from fairlap.scenarios.load.system_under_test import Issue
from machine_marks import needs
from sleeping_issue import SERVICE_S, answers, generating, request, sleeping

needs("mlperf_loadgen")
pytestmark = pytest.mark.sanitized  # no code of ours is native here, and a run that was broken off has 5 s to end

ITEMS = 20
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
OUTPUTS = {"item": (), "twice": (1,)}


def test_in_single_stream_the_figure_is_the_latency_at_the_percentile(tmp_path: Path) -> None:
    result = run_loadgen(request("single-stream", tmp_path, seed=3), ITEMS, sleeping())
    assert (result.valid, result.why_invalid, result.errors) == (True, (), ())
    assert (result.unit, result.percentile, result.late_queries) == ("s", 0.9, None)
    assert result.figure is not None
    assert result.figure == result.latencies_s["90"] >= SERVICE_S
    assert result.early_stopping_s is not None
    assert result.early_stopping_s >= result.figure
    assert result.min_s is not None
    assert result.max_s is not None
    assert SERVICE_S <= result.min_s <= result.latencies_s["50"] <= result.latencies_s["99.9"] <= result.max_s
    assert result.queries == result.samples >= 64
    assert result.version.partition(".")[0].isdigit()
    assert {each.name for each in tmp_path.iterdir()} >= {SUMMARY, DETAIL, ACCURACY}


@pytest.mark.parametrize("wrong_by", [0.0, 1.0])
def test_answers_that_are_drawn_while_it_is_timed_are_in_the_log(wrong_by: float, tmp_path: Path) -> None:
    issue = Issue(sleeping(0).serve, lambda items, count: [each + wrong_by for each in answers(items, count)])
    result = run_loadgen(request("server", tmp_path, logged_answers=30), ITEMS, issue)
    found = answers_in(tmp_path, OUTPUTS)
    assert 0 < len(found) < result.samples
    for each in found:
        assert each.outputs["item"] == each.item + wrong_by
        assert each.outputs["twice"] == 2 * each.item + wrong_by


def test_in_multi_stream_a_query_of_several_samples_is_one_batch(tmp_path: Path) -> None:
    result = run_loadgen(request("multi-stream", tmp_path), ITEMS, sleeping(largest_batch=4))
    assert (result.valid, result.unit, result.largest_group) == (True, "s", 4)
    assert result.samples == 4 * result.queries
    assert result.figure is not None
    assert result.figure == result.latencies_s["90"] >= SERVICE_S


def test_without_a_batch_call_the_latency_of_a_query_is_that_of_its_last_sample(tmp_path: Path) -> None:
    result = run_loadgen(request("multi-stream", tmp_path), ITEMS, sleeping())
    assert (result.valid, result.largest_group) == (True, 1)
    assert result.min_s is not None
    assert result.min_s >= 4 * SERVICE_S


def test_in_server_the_figure_is_the_completed_rate(tmp_path: Path) -> None:
    result = run_loadgen(request("server", tmp_path), ITEMS, sleeping())
    assert (result.valid, result.late_queries, result.unit) == (True, 0, "1/s")
    assert result.figure is not None
    assert result.scheduled_per_s is not None
    assert 0 < result.figure < result.scheduled_per_s * 1.05
    assert result.queries >= 81


def test_in_offline_the_figure_is_samples_per_second(tmp_path: Path) -> None:
    result = run_loadgen(request("offline", tmp_path), ITEMS, sleeping(largest_batch=8, threads=2))
    assert (result.valid, result.unit, result.percentile, result.largest_group) == (True, "1/s", None, 8)
    assert result.figure is not None
    assert 0 < result.figure <= 2 * 8 / SERVICE_S
    assert (result.queries, result.samples >= ITEMS) == (1, True)
    assert result.max_s is not None
    assert result.max_s >= 0.2


def test_whether_the_way_to_the_contestant_misses_the_bound_is_found_with_one_that_answers_at_once(
    tmp_path: Path,
) -> None:
    assert not path_misses_bound(request("server", tmp_path, bound_s=1.0), ITEMS)
    assert path_misses_bound(request("server", tmp_path, rate_per_s=1e5, bound_s=1e-6), ITEMS)
    assert list(tmp_path.iterdir()) == []  # its logs are not those of the run


def test_a_bound_that_is_not_met_is_invalid(tmp_path: Path) -> None:
    result = run_loadgen(request("server", tmp_path, bound_s=SERVICE_S / 2), ITEMS, sleeping())
    assert not result.valid
    assert result.why_invalid == ("bound", "early_stopping")
    assert result.late_queries == result.queries


FIRST_S, EACH_S, TOKENS = 0.004, 0.001, 11


def test_first_tokens_and_times_per_token_are_those_that_the_contestant_wrote_down(tmp_path: Path) -> None:
    wrote: list[tuple[float, float]] = []
    found = run_loadgen(request("single-stream", tmp_path), ITEMS, generating(FIRST_S, EACH_S, TOKENS, wrote))
    assert (found.valid, found.errors) == (True, ())
    first_s, later_s = np.median(wrote[-found.queries :], axis=0)
    assert found.first_token_s["50"] >= first_s
    assert found.per_token_s["50"] == pytest.approx(later_s / (TOKENS - 1), rel=0.1)
    assert found.latencies_s["50"] - found.first_token_s["50"] == pytest.approx(later_s, rel=0.3)
    assert found.tokens_per_s is not None
    assert found.tokens_per_s < TOKENS / (FIRST_S + (TOKENS - 1) * EACH_S) * 1.1


def test_offline_counts_tokens_per_second_and_a_query_of_several_none(tmp_path: Path) -> None:
    found = run_loadgen(request("offline", tmp_path), ITEMS, generating(FIRST_S, EACH_S, TOKENS))
    assert found.tokens_per_s == pytest.approx(TOKENS * (found.figure or 0.0), rel=0.01)
    asked = request("multi-stream", tmp_path, least_queries=3, least_s=0.0)
    found = run_loadgen(asked, ITEMS, generating(FIRST_S, EACH_S, TOKENS))
    assert (found.tokens_per_s, found.first_token_s) == (None, {})


@pytest.mark.slow_but("first_token")
@pytest.mark.parametrize(
    ("bounds", "missed"),
    [
        ({"first_token_s": 5.0, "per_token_s": 5.0}, None),
        ({"first_token_s": FIRST_S / 2}, "first_token"),
        ({"first_token_s": 5.0, "per_token_s": EACH_S / 2}, "per_token"),
    ],
)
def test_a_server_run_is_judged_by_the_bounds_of_its_tokens(
    bounds: dict[str, float], missed: str | None, tmp_path: Path
) -> None:
    asked = request("server", tmp_path, bound_s=None, rate_per_s=60.0, **bounds)
    found = run_loadgen(asked, ITEMS, generating(FIRST_S, EACH_S, TOKENS))
    assert found.valid == (missed is None)
    assert {*found.why_invalid} & BOUNDS == ({missed} if missed else set())
    assert found.late_queries is None


def test_a_whole_answer_with_a_bound_is_judged_as_before_and_so_is_one_of_a_single_token(tmp_path: Path) -> None:
    both = request("server", tmp_path, first_token_s=FIRST_S / 2)
    assert run_loadgen(both, ITEMS, generating(SERVICE_S, 0.0, TOKENS)).valid
    found = run_loadgen(request("single-stream", tmp_path), ITEMS, generating(SERVICE_S, 0.0, 1))
    assert (found.valid, found.first_token_s) == (True, {})


def test_an_exception_before_the_first_token_ends_the_run_and_the_next_one_works(tmp_path: Path) -> None:
    issue = generating(FIRST_S, EACH_S, TOKENS)

    def serve(items: Sequence[int]) -> list[int]:
        raise ValueError("no token")

    with pytest.raises(ValueError, match="no token"):
        run_loadgen(request("offline", tmp_path), ITEMS, replace(issue, serve=[serve]))
    assert run_loadgen(request("offline", tmp_path), ITEMS, issue).valid


@pytest.mark.parametrize("scenario", ["single-stream", "multi-stream", "server"])
def test_too_few_queries_are_invalid(scenario: Scenario, tmp_path: Path) -> None:
    result = run_loadgen(request(scenario, tmp_path, least_s=0.0, least_queries=10), ITEMS, sleeping(0))
    assert (result.valid, result.why_invalid) == (False, ("early_stopping",))
    assert result.queries == 10
    assert "10" in result.early_stopping


def test_a_run_of_one_query_has_no_rate(tmp_path: Path) -> None:
    result = run_loadgen(request("server", tmp_path, least_s=0.0, least_queries=1), ITEMS, sleeping(0))
    assert (result.queries, result.scheduled_per_s) == (1, None)
    assert msgspec.json.decode(msgspec.json.encode(result), type=LoadGenResult) == result


@pytest.mark.parametrize("scenario", ["single-stream", "offline"])
def test_a_run_that_ends_too_early_is_invalid(scenario: Scenario, tmp_path: Path) -> None:
    """As it is given an expected latency that is far too long."""
    wrong = request(scenario, tmp_path, least_queries=1, expected_latency_s=10.0)
    result = run_loadgen(wrong, ITEMS, sleeping(0))
    assert not result.valid
    assert "duration" in result.why_invalid
    assert result.attempts == 1


def test_a_run_that_proves_too_short_is_repeated_with_more_queries(tmp_path: Path) -> None:
    calls: list[int] = []

    def slow_before_the_run(items: Sequence[int]) -> None:
        calls.append(1)
        time.sleep(0.1 if len(calls) <= 5 else 0.001)

    short = request("offline", tmp_path, least_queries=1)
    result = run_loadgen(short, ITEMS, sleeping(0, before=slow_before_the_run))
    assert result.attempts > 1
    assert result.valid or result.attempts == 3, "on a busy machine the second estimate may be wrong too"
    assert result.samples > 10


@pytest.mark.slow_but("server")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_exception_in_the_contestant_ends_the_run_and_the_next_one_works(scenario: Scenario, tmp_path: Path) -> None:
    calls: list[int] = []

    def failing(items: Sequence[int]) -> None:
        calls.append(1)
        if len(calls) > 10:
            raise ValueError("no kernel for this item")

    with pytest.raises(ValueError, match="no kernel for this item"):
        run_loadgen(request(scenario, tmp_path, least_s=0.0, least_queries=40), ITEMS, sleeping(before=failing))
    assert run_loadgen(request(scenario, tmp_path), ITEMS, sleeping(0)).queries > 0


@pytest.mark.slow_but("single-stream", "server")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_contestant_that_hangs_is_given_up_and_the_next_run_works(scenario: Scenario, tmp_path: Path) -> None:
    released = threading.Event()
    calls: list[int] = []

    def hanging(items: Sequence[int]) -> None:
        calls.append(1)
        if len(calls) > 10:
            released.wait(20)

    given_up = request(scenario, tmp_path, give_up_s=0.15, expected_latency_s=0.0005)
    with pytest.raises(DroppedRequests, match=r"of \d+ requests were not answered") as raised:
        run_loadgen(given_up, ITEMS, sleeping(0.0005, before=hanging))
    assert raised.value.code == "E_DROPPED_REQUESTS"
    assert run_loadgen(request(scenario, tmp_path), ITEMS, sleeping(0)).queries > 0
    released.set()


def test_ctrl_c_ends_a_run_and_the_next_one_works(tmp_path: Path) -> None:
    calls: list[int] = []

    def interrupting(items: Sequence[int]) -> None:
        calls.append(1)
        if len(calls) == 10:
            os.kill(os.getpid(), signal.SIGINT)

    long = request("offline", tmp_path, least_s=10.0, expected_latency_s=0.001)
    with pytest.raises(KeyboardInterrupt):
        run_loadgen(long, ITEMS, sleeping(0.01, before=interrupting))
    assert len(calls) < 5000, "of fourteen thousand"
    assert run_loadgen(request("offline", tmp_path), ITEMS, sleeping(0)).valid


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_for_accuracy_logs_the_answer_to_every_item(scenario: Scenario, tmp_path: Path) -> None:
    result = run_loadgen(request(scenario, tmp_path, accuracy=True), ITEMS, sleeping(0, largest_batch=8))
    assert (result.valid, result.accuracy, result.figure) == (True, True, None)
    logged = answers_in(tmp_path, OUTPUTS)
    assert {answer.item for answer in logged} == set(range(ITEMS))
    for answer in logged:
        assert answer.outputs["item"] == answer.item
        assert answer.outputs["twice"].tolist() == [2 * answer.item]


def test_a_sample_without_an_answer_fails_the_run_for_accuracy(tmp_path: Path) -> None:
    served = sleeping(0, largest_batch=8)
    too_few = Issue(served.serve, lambda items, count: answers(items, count - 1), 8)
    with pytest.raises(DroppedRequests, match="1 of 8"):
        run_loadgen(request("offline", tmp_path, accuracy=True), ITEMS, too_few)


def test_single_samples_are_served_together_when_they_wait(tmp_path: Path) -> None:
    result = run_loadgen(request("server", tmp_path, rate_per_s=1000.0), ITEMS, sleeping(0.005, largest_batch=16))
    assert result.valid
    assert 1 < result.largest_group <= 16


def test_a_file_audit_config_in_the_current_folder_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "audit.config").write_text("*.SingleStream.mode = 1\n*.*.min_query_count = 5000\n")
    monkeypatch.chdir(tmp_path)
    result = run_loadgen(request("single-stream", tmp_path, least_s=0.0, least_queries=70), ITEMS, sleeping(0))
    assert (result.valid, result.queries) == (True, 70)


def test_the_seed_decides_which_items_are_asked_about(tmp_path: Path) -> None:
    def asked(seed: int) -> list[int]:
        items: list[int] = []
        few = request("single-stream", tmp_path, least_s=0.0, least_queries=30, seed=seed)
        run_loadgen(few, ITEMS, sleeping(0, before=items.extend))
        return items

    assert asked(1) == asked(1) != asked(2)


@pytest.mark.parametrize(
    "parts",
    [
        {"rate_per_s": None},
        {"bound_s": 0.0},
        {"percentile": 1.0},
        {"samples_per_query": 0},
    ],
)
def test_what_loadgen_would_only_log_is_refused(parts: dict[str, Any], tmp_path: Path) -> None:
    wrong = msgspec.structs.replace(request("server", tmp_path), **parts)
    with pytest.raises(InvalidRequest):
        run_loadgen(wrong, ITEMS, sleeping(0))


def test_without_items_or_threads_there_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest):
        run_loadgen(request("offline", tmp_path), 0, sleeping(0))
    with pytest.raises(InvalidRequest):
        run_loadgen(request("offline", tmp_path), ITEMS, sleeping(0, threads=0))


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    require_loadgen()
    monkeypatch.setattr(loadgen_messages, "find_spec", lambda _name: None)
    with pytest.raises(NotAvailable, match=r"fairlap\[load\]") as raised:
        require_loadgen()
    assert raised.value.code == "E_NOT_AVAILABLE"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write")
def test_logs_that_cannot_be_written_are_named_and_the_next_run_works(tmp_path: Path) -> None:
    for folder in (Path("/proc"), tmp_path / "missing"):
        with pytest.raises(LoadGenFailed, match=str(folder)):
            run_loadgen(request("offline", folder), ITEMS, sleeping(0))
    assert run_loadgen(request("offline", tmp_path), ITEMS, sleeping(0)).valid


def test_logs_that_are_cut_off_or_damaged_are_named(tmp_path: Path) -> None:
    asked = request("single-stream", tmp_path, least_s=0.0, least_queries=70)
    run_loadgen(asked, ITEMS, sleeping(0))
    detail = (tmp_path / DETAIL).read_text()
    for text in (detail[: len(detail) // 2], "\n".join(detail.splitlines()[:5]), ":::MLLOG {}", ""):
        (tmp_path / DETAIL).write_text(text)
        with pytest.raises(LoadGenFailed, match=DETAIL) as raised:
            result_in(asked)
        assert raised.value.code == "E_LOADGEN"
    (tmp_path / DETAIL).write_text(detail)
    (tmp_path / SUMMARY).unlink()
    with pytest.raises(LoadGenFailed, match=SUMMARY):
        result_in(asked)
    for text in ("[", '[{"qsl_idx": 0, "data": "00"}]', '[{"data": "0000803F0000803F"}]'):
        (tmp_path / ACCURACY).write_text(text)
        with pytest.raises(LoadGenFailed, match=ACCURACY):
            answers_in(tmp_path, OUTPUTS)


def test_a_clock_that_is_set_during_the_run_makes_it_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_s, set_by_s = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: true_s() + set_by_s[0])

    def setting(items: Sequence[int]) -> None:
        set_by_s[0] = -0.5

    asked = request("single-stream", tmp_path, least_s=0.0, least_queries=70)
    result = run_loadgen(asked, ITEMS, sleeping(0, before=setting))
    assert (result.valid, result.why_invalid) == (False, ("clock",))
    assert run_loadgen(asked, ITEMS, sleeping(0, before=setting)).valid


def test_errors_that_loadgen_logged_make_a_run_invalid(tmp_path: Path) -> None:
    asked = request("single-stream", tmp_path, least_s=0.0, least_queries=70)
    assert run_loadgen(asked, ITEMS, sleeping(0)).valid
    detail = (tmp_path / DETAIL).read_text()
    error = ':::MLLOG {"key": "error_runtime", "value": "clocks differ", "metadata": {"is_error": true}}\n'
    (tmp_path / DETAIL).write_text(detail + error)
    result = result_in(asked)
    assert (result.valid, result.why_invalid, result.errors) == (False, ("errors",), ("clocks differ",))
