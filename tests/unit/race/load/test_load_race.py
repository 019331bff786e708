"""Races of load of contestants whose calls take a known time: what they show, and who is caught."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from fairlap.meters import disturbances
from fairlap.race.planning.plan import Limits, Measuring, Plan
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.request.fields.load import Load, Scenario
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.scenarios.load.load_messages import STAMPS
from fairlap.scenarios.load.race import load_run
from fairlap.scenarios.load.race.loadgen_check import ACCURACY as ACCURACY_FOLDER
from fairlap.scenarios.load.race.loadgen_check import WHEN as WHEN_LOADGEN
from fairlap.scenarios.load.race.loadgen_check import WHEN_TIMED
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from served_framework import CALL_S, MET, install_served
from small_races import run_race, small_plan

pytestmark = needs_proc

BOUND = Load(0.9, 0.1, trial_s=0.1)  # met on a busy machine too


@pytest.fixture(autouse=True)
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_served(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def plan_of(contestants: str, load: Load = BOUND, blocks: int = 1) -> Plan:
    return small_plan(
        contestants,
        Work("mlp", 1, load=load),
        blocks=blocks,
        measuring=Measuring(seconds=0.04, rounds=2),
        limits=Limits(start_s=60, prepare_s=60, answer_s=30, measure_s=30),
    )


def recomputed(process: ProcessResult, samples_ns: Mapping[str, np.ndarray]) -> None:
    """Every figure of a row, from the stamps alone."""
    assert process.load is not None
    stamped = 0
    for place, trial in enumerate(process.load.trials):
        if f"trial-{place}/due_ns" not in samples_ns:
            assert trial.kind in ("search", "one_item", "unique_items")
            continue
        stamped += 1
        due, issued, started, completed = (samples_ns[f"trial-{place}/{name}"] for name in STAMPS)
        latency = completed - due
        assert trial.times is not None
        expected = (trial.times.p50_ns, trial.times.p90_ns, trial.times.p99_ns)
        assert np.quantile(latency, (0.5, 0.9, 0.99)) == pytest.approx(expected, rel=1e-12)
        assert np.quantile(issued - due, 0.99) == pytest.approx(trial.times.issue_lateness_p99_ns, rel=1e-12)
        assert np.median(completed - started) == pytest.approx(trial.times.service_p50_ns, rel=1e-12)
        assert 1e9 * len(due) / completed.max() == pytest.approx(trial.served_per_s, rel=1e-12)
        assert (latency > 1e9 * BOUND.least_bound_s).sum() == trial.late
        assert len(due) / len(np.unique(started)) == pytest.approx(trial.mean_batch)
    assert stamped >= 6  # the capacity, lone requests, the largest rate and three rates of the curve


def raced(plan: Plan) -> dict[str, ProcessResult]:
    return {process.contestant: process for process in run_race(plan).processes}


@pytest.mark.slow
def test_every_figure_of_a_trial_can_be_computed_again_from_the_stamps_that_are_stored() -> None:
    kept: list[tuple[ProcessResult, Mapping[str, np.ndarray]]] = []
    run_race(plan_of("served"), keep=lambda process, samples_ns: kept.append((process, samples_ns)))
    [(process, samples_ns)] = kept
    assert process.outcome == "finished", process.message
    assert next(iter(samples_ns)) == process.headline_quantity
    recomputed(process, samples_ns)


@pytest.mark.slow
def test_contestants_take_turns_and_each_finds_a_rate_below_what_its_calls_allow() -> None:
    processes = raced(plan_of("served,served:slower"))
    for name, process in processes.items():
        assert process.outcome == "finished", process.message
        assert process.in_turn_because == ""
        found = process.load
        assert found is not None
        assert found.limited_by in ("bound", "capacity")
        most = 1 / CALL_S[name.partition(":")[2]]
        assert found.capacity_per_s is not None
        assert 0 < (found.largest_rate_per_s or 0) <= found.capacity_per_s < most
        assert {each.kind for each in found.trials} >= {
            *("capacity", "lone", "search", "at_largest_rate", "curve", "one_item", "unique_items")
        }
        last = found.at_largest_rate
        assert last is not None
        assert (last.outcome, last.rate_per_s) == ("met", found.largest_rate_per_s)
        errors = [error for error in process.errors if error.when == load_run.WHEN]
        assert len(errors) >= sum(each.checked > 0 for each in found.trials) > 0
        assert all(error.right for error in errors)


@pytest.mark.slow_but("keeps", "drops")
@pytest.mark.parametrize(
    ("variant", "code"),
    [("drops", "E_DROPPED_REQUESTS"), ("keeps", "E_KEPT_ANSWERS"), ("wrong", "E_OUTPUT")],
)
def test_a_contestant_that_cheats_under_load_alone_is_disqualified(variant: str, code: str) -> None:
    [process] = raced(plan_of(f"served:{variant}")).values()
    assert (process.outcome, process.code) == ("disqualified", code), process.message
    assert process.load is not None
    assert process.load.trials  # what it showed until then is kept


@pytest.mark.slow
def test_a_request_that_is_never_answered_disqualifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_run, "_GIVE_UP_S", 0.5)
    monkeypatch.setattr(load_run, "_GIVE_UP_TRIALS", 1.0)
    [process] = raced(plan_of("served:hangs")).values()
    assert (process.outcome, process.code) == ("disqualified", "E_DROPPED_REQUESTS"), process.message


@pytest.mark.slow
def test_a_bound_below_a_single_call_is_met_at_no_rate() -> None:
    plan = plan_of("served", Load(0.9, 0.001, trial_s=0.1), blocks=2)
    race = run_race(plan)
    [row] = results_of(Run(plan, race.processes, {}, {})).rows
    assert (row.outcome, row.code) == ("unqualified", "E_NO_RATE")
    assert row.largest_rate_limited_by == "lone request"


@pytest.mark.slow
def test_several_workers_serve_batches_whose_answers_are_right() -> None:
    [process] = raced(plan_of("served", Load(0.9, 0.1, workers=2, largest_batch=4, trial_s=0.1))).values()
    assert process.outcome == "finished", process.message
    assert process.load is not None
    [capacity] = process.load.of_kind("capacity")
    offered_s = sum(trial.elapsed_s for trial in process.load.trials if "item" not in trial.kind)
    assert process.machine_after_turns[disturbances.MEASURED] >= offered_s  # and nothing else was metered
    assert process.machine_after_turns[disturbances.WAITED] >= 0
    assert capacity.mean_batch > 2
    assert capacity.checked


def test_a_budget_that_is_spent_ends_the_search_with_what_it_found() -> None:
    race = Race(plan_of("served"))
    asked = iter([True, True, True, False])
    race._may_go_on = lambda: next(asked)  # type: ignore[method-assign]
    race.run()
    [process] = race.processes
    assert process.load is not None
    assert (process.load.limited_by, len(process.load.trials)) == ("budget", 3)
    assert "W_BUDGET_IN_LOAD" in {warning.code for warning in process.warnings}


@pytest.mark.slow
def test_loadgen_judges_a_rate_below_the_largest_one_once() -> None:
    pytest.importorskip("mlperf_loadgen")
    race = run_race(plan_of("served", Load(0.9, 5.0, trial_s=0.1), blocks=2))
    first, second = (process.load for process in race.processes)
    assert first is not None
    assert second is not None
    assert first.loadgen is not None
    assert first.loadgen.scenario == "server"
    assert first.loadgen.scheduled_per_s == pytest.approx(0.9 * (first.largest_rate_per_s or 0), rel=0.5)
    assert second.loadgen is None
    assert second.loadgen_absent


@pytest.mark.slow
def test_in_a_scenario_of_loadgen_its_figure_is_what_counts_and_its_logs_stay(tmp_path: Path) -> None:
    pytest.importorskip("mlperf_loadgen")
    load = Load(0.99, 0.0, trial_s=0.2, scenario="offline", logs=str(tmp_path / "logs"))
    plan = plan_of("served,served:slower", load, blocks=2)
    race = run_race(plan)
    assert [process.outcome for process in race.processes] == ["finished"] * 4
    [result] = results_of(Run(plan, race.processes, {}, {})).work_results
    assert (result.basis.judged.by, result.basis.judged.unit) == ("samples per second by LoadGen", "1/s")
    assert all(len(each.figures_ns) == 2 for each in result.contestants)
    for row in result.rows:
        assert row.loadgen == "VALID in offline"
        assert row.loadgen_rate_per_s is not None
        assert row.largest_rate_per_s is None
    errors = [error for process in race.processes for error in process.errors if error.when == WHEN_LOADGEN]
    assert len(errors) == 4
    of_block = tmp_path / "logs" / "block-0-served"
    assert (of_block / ACCURACY_FOLDER / "mlperf_log_accuracy.json").stat().st_size
    of_timed = (of_block / "mlperf_log_summary.txt").read_text()  # not of the run for accuracy that came after it
    assert "Performance" in of_timed
    assert "Result is : VALID" in of_timed


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_loadgen_is_served_by_as_many_threads_as_were_asked_for(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlperf_loadgen")
    monkeypatch.setenv(MET, str(tmp_path / "met"))
    load = Load(0.99, 0.0, workers=workers, trial_s=0.1, scenario="offline")
    [process] = raced(plan_of("served:together", load)).values()
    assert process.outcome == "finished", process.message
    assert process.load is not None
    assert process.load.loadgen is not None
    assert process.load.loadgen.valid
    assert (tmp_path / "met").exists() is (workers == 2)


@pytest.mark.slow
def test_a_contestant_whose_answers_are_wrong_in_loadgen_is_disqualified() -> None:
    pytest.importorskip("mlperf_loadgen")
    [process] = raced(plan_of("served:wrong", Load(0.99, 0.0, trial_s=0.1, scenario="offline"))).values()
    assert (process.outcome, process.code) == ("disqualified", "E_OUTPUT"), process.message


@pytest.mark.slow_but("offline")
@pytest.mark.parametrize("scenario", ["single-stream", "offline"])
def test_a_contestant_whose_answers_are_wrong_only_while_loadgen_times_it_is_disqualified(scenario: Scenario) -> None:
    """Where each item is asked about once, for accuracy, all of its answers are right."""
    pytest.importorskip("mlperf_loadgen")
    load = Load(0.9, 0.0, trial_s=0.2, scenario=scenario)
    processes = raced(plan_of("served,served:tires", load))
    honest, tiring = processes["served"], processes["served:tires"]
    assert honest.outcome == "finished", honest.message
    assert {error.when for error in honest.errors} >= {WHEN_LOADGEN, WHEN_TIMED}
    assert (tiring.outcome, tiring.code) == ("disqualified", "E_OUTPUT"), tiring.message
    assert WHEN_TIMED in tiring.message
