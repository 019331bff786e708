"""What others took is judged in the period that the figure is of: epochs, trials and answers, or single calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from fairlap.meters import disturbances
from fairlap.meters.stolen_time import E_BUSY_MACHINE, E_THROTTLED
from fairlap.race.counted_blocks import gate_blocks
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.race.stolen_time import stolen_time
from fairlap.request.fields.data.stages import Stages
from fairlap.request.fields.load import Load
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.sizes.mix import Mix
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.file_to_answer.stage_messages import AnswersFound, StageFound
from fairlap.scenarios.learning.scenario import STEP_TIME
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.scenarios.load.load_messages import LoadFound, LoadTimes, LoadTrial
from fairlap.scenarios.load.loadgen_messages import LoadGenResult
from fairlap.scenarios.load.race.load_run import without_requests_s
from fairlap.scenarios.mixed_sizes.mix_messages import CallsOfSize, MixFound
from fairlap.scenarios.process_result import ProcessResult
from fairlap.verdict import TIME_TO_SCORE
from runs_for_rows import a_process

TARGET = 0.9
QUIET = {disturbances.WAITED: 0.02, disturbances.OTHERS: 0.03, disturbances.MEASURED: 1.0}
STARVED = {disturbances.WAITED: 1.1, disturbances.OTHERS: 1.3, disturbances.MEASURED: 1.0}
STOPPED = {**QUIET, disturbances.THROTTLED: 0.4}
Does = Callable[[ProcessResult, float], None]  # what a process found, that needs so many times as long


def learns(process: ProcessResult, times: float) -> None:
    process.learning = LearningCurve(TARGET, (Evaluation(40, 0.04 * times, 0.95, 0.1),))


def learns_too_little(process: ProcessResult, times: float) -> None:
    process.learning = LearningCurve(TARGET, (Evaluation(40, 0.04 * times, 0.5, 0.1),))


def serves(process: ProcessResult, times: float) -> None:
    process.load = LoadFound((), 400.0 / times, "bound")


def answers_loadgen(process: ProcessResult, times: float) -> None:
    process.load = LoadFound(loadgen=LoadGenResult("offline", False, "5.1", True, figure=400.0 / times, unit="1/s"))


def calls_of_sizes(process: ProcessResult, times: float) -> None:
    process.mix = MixFound((CallsOfSize("8", 30, 1e6 * times, 5), CallsOfSize("64", 10, 5e6 * times, 5)))


def answers_files(process: ProcessResult, times: float) -> None:
    process.answers = AnswersFound(
        5e6 * times, (StageFound("decode", 3e6 * times), StageFound("model", 2e6 * times)), 40
    )


def calls(_process: ProcessResult, _times: float) -> None:
    """Nothing follows the turns."""


SCENARIOS: dict[str, tuple[Work, Does]] = {
    "to a score": (Work("mlp", 4, "train"), learns),
    "load": (Work("mlp", 1, load=Load(0.99, 0.02)), serves),
    "LoadGen": (Work("mlp", 1, load=Load(0.99, 0.0, scenario="offline")), answers_loadgen),
    "mixed sizes": (Work("mlp", 1, sizes_of_calls=Mix(("sequence",), ((8,), (64,)), (30, 10))), calls_of_sizes),
    "file to answer": (Work("mlp", 1, stages=Stages("/photos", ("a.jpg",), ("m:decode",))), answers_files),
}


def judged(
    work: Work, does: Does, turns: Mapping[str, float], after_turns: Mapping[str, float], *, threads: int = 2
) -> WorkResult:
    """Judge a race in which torch takes twice as long as jax."""
    to_score = TARGET if work.mode == "train" else None
    plan = draw_plan(
        Contestants("torch,jax"), (work,), blocks=8, conditions="controlled", threads=threads,
        available_cores=(0, 1), seed=1, to_score=to_score,
    )  # fmt: skip
    processes = []
    for block in range(8):
        for name, times in (("torch", 2.0), ("jax", 1.0)):
            process = a_process(block, name, 1e6 * times, plan.works[0])
            does(process, times * (1 + 0.001 * ((block * 7 + len(name)) % 5)))
            process.machine, process.machine_after_turns = dict(turns), dict(after_turns)
            processes.append(process)
    [found] = results_of(Run(plan, processes, {}, {}), "r").work_results
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(("after_turns", "code"), [(STARVED, E_BUSY_MACHINE), (STOPPED, E_THROTTLED)])
def test_nothing_is_claimed_where_only_the_judged_period_was_starved(
    scenario: str, after_turns: Mapping[str, float], code: str
) -> None:
    found = judged(*SCENARIOS[scenario], QUIET, after_turns)
    assert found.basis.no_verdict_code == code
    assert (found.table, found.comparisons) == (None, ())
    assert all(row.ratio is None and code in row.absent["ratio"] for row in found.rows)
    assert found.busy is not None
    assert set(found.basis.stolen.by_contestant) == {"torch", "jax"}


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("turns", [STARVED, {disturbances.WAITED: 1.1, disturbances.THROTTLED: 4.0}])
def test_a_ratio_is_claimed_where_only_the_calls_before_were_starved_and_the_row_says_so(
    scenario: str, turns: Mapping[str, float]
) -> None:
    found = judged(*SCENARIOS[scenario], turns, QUIET)
    assert found.basis.no_verdict_code == ""
    [comparison] = found.comparisons
    assert max(comparison.ratio, 1 / comparison.ratio) == pytest.approx(2.0, rel=0.01)
    assert found.busy is not None
    assert found.busy.code == "W_BUSY_MACHINE"


def test_steps_that_were_starved_are_not_compared_beside_a_time_to_a_score_that_was_not() -> None:
    found = {each.metric: each for each in judged(*SCENARIOS["to a score"], STARVED, QUIET).other_quantities}
    assert E_BUSY_MACHINE in found[STEP_TIME].why_not
    assert found[STEP_TIME].comparisons == ()
    quiet = {each.metric: each for each in judged(*SCENARIOS["to a score"], QUIET, QUIET).other_quantities}
    assert (quiet[STEP_TIME].why_not, len(quiet[STEP_TIME].comparisons)) == ("", 1)


def test_where_no_contestant_reaches_the_score_steps_are_judged_by_their_own_period() -> None:
    work = SCENARIOS["to a score"][0]
    found = judged(work, learns_too_little, QUIET, STARVED)
    assert (found.basis.no_verdict_code, len(found.comparisons)) == ("", 1)
    assert {each.metric: each for each in found.other_quantities}[TIME_TO_SCORE].why_not
    assert judged(work, learns_too_little, STARVED, QUIET).basis.no_verdict_code == E_BUSY_MACHINE


@pytest.mark.parametrize("mode", ["infer", "grad"])
def test_calls_are_judged_by_their_turns(mode: str) -> None:
    work = Work("mlp", 4, mode)  # type: ignore[arg-type]
    assert judged(work, calls, STARVED, {}).basis.no_verdict_code == E_BUSY_MACHINE
    assert judged(work, calls, QUIET, {}).basis.no_verdict_code == ""


def test_a_run_of_before_epochs_were_read_is_judged_by_what_was() -> None:
    assert judged(*SCENARIOS["to a score"], STARVED, {}).basis.no_verdict_code == E_BUSY_MACHINE
    assert judged(*SCENARIOS["to a score"], QUIET, {}).basis.no_verdict_code == ""


def test_threads_that_wait_for_each_other_are_no_busy_machine() -> None:
    crowded = {**STARVED, disturbances.OTHERS: 0.04}
    found = judged(*SCENARIOS["load"], QUIET, crowded)
    assert (found.basis.no_verdict_code, found.busy) == ("", None)


@pytest.mark.parametrize(("scenario", "code"), [("load", E_BUSY_MACHINE), ("to a score", ""), ("LoadGen", "")])
def test_a_single_thread_that_loses_its_core_is_late_with_a_request_and_spoils_no_median(
    scenario: str, code: str
) -> None:
    assert judged(*SCENARIOS[scenario], QUIET, STARVED, threads=1).basis.no_verdict_code == code


@pytest.mark.parametrize(("ranks", "code"), [(1, ""), (2, E_BUSY_MACHINE)])
def test_ranks_of_one_thread_meet_each_other(ranks: int, code: str) -> None:
    work = Work("mlp", 4, "train", scale=Scale(1, ranks))
    taken = {disturbances.WAITED: 0.0, disturbances.TAKEN: 0.9}
    assert judged(work, calls, taken, {}, threads=1).basis.no_verdict_code == code


def test_a_single_quiet_contestant_of_a_block_still_keeps_the_ratio() -> None:
    processes = []
    for block in range(8):
        for name, readings in (("torch", STARVED), ("jax", QUIET)):
            process = a_process(block, name, 1e6, Work("mlp", 4))
            process.machine_after_turns = dict(readings)
            processes.append(process)
    stolen = stolen_time(processes, "after_turns")
    assert stolen.by_contestant == {"torch": 1.1, "jax": 0.02}
    assert stolen.refusal(threads=2) == ("", "")


def test_noisy_blocks_are_those_whose_judged_period_was_noisy() -> None:
    processes = []
    for block in range(12):
        for name in ("torch", "jax"):
            process = a_process(block, name, 1e6, Work("mlp", 4))
            process.machine = {disturbances.STEAL: 0.2 if block == 3 else 0.0}
            process.machine_after_turns = {disturbances.STEAL: 0.2 if block == 5 else 0.0}
            processes.append(process)
    assert gate_blocks(range(12), processes).dropped == (3,)
    assert gate_blocks(range(12), processes, period="after_turns").dropped == (5,)


@pytest.mark.parametrize(
    ("requests", "mean_batch", "workers", "idle_s"), [(400, 1.0, 1, 1.6), (400, 4.0, 1, 1.9), (8000, 1.0, 4, 0.0)]
)
def test_time_without_requests_is_what_calls_leave_of_a_trial(
    requests: int, mean_batch: float, workers: int, idle_s: float
) -> None:
    times = LoadTimes(2e6, 3e6, 4e6, 1e6, 2e4)
    trial = LoadTrial("search", 200.0, requests, 0, "met", 0, 200.0, 2.0, times, mean_batch)
    assert without_requests_s(trial, workers) == pytest.approx(idle_s)
