"""Whatever a contestant does, its row says it, the others stand, and nothing is left running."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.machine.hardware import matrix_threads
from fairlap.race import stopping
from fairlap.race.planning.plan import Limits, Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.processes import turns
from fairlap.race.progress import Silence
from fairlap.race.race import Race
from fairlap.race.stopping import Ending
from fairlap.request.names import contestant_named
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from small_races import plan_of, run_race, small_plan

pytestmark = [pytest.mark.sanitized, pytest.mark.usefixtures("example"), needs_proc]

QUICK = Limits(start_s=60, prepare_s=60, answer_s=60, measure_s=60)


def race(contestants: str, model: str = "mlp", limits: Limits = QUICK, blocks: int = 1) -> list[ProcessResult]:
    plan = small_plan(contestants, Work(model, 2), blocks=blocks, measuring=Measuring(seconds=0.05), limits=limits)
    running = run_race(plan)
    return sorted(running.processes, key=lambda process: process.contestant)


def process_of(variant: str, limits: Limits) -> ProcessResult:
    """Race a bad contestant alongside a good one, which must have finished, and return the bad one's process."""
    good, bad = race(f"example,example:{variant}", limits=limits)
    assert good.outcome == "finished", good.message
    return bad


HARMLESS = ("slow", "loud", "daemon")
DISQUALIFIED = {
    "swapped": "E_OUTPUT",
    "transposed": "E_OUTPUT",
    "silent-bf16": "E_OUTPUT",
    "cached": "E_STALE_ANSWER",
    "nan": "E_OUTPUT",
    "late-nan": "E_OUTPUT",
    "one-output-less": "E_OUTPUT",
    "other-weights": "E_WEIGHTS",
    "other-threads": "E_THREADS",
    "other-precision": "E_PRECISION",
}
LOST = {  # launch/test_worker_misdeeds.py has every other way
    "unsupported": ("unsupported", "example does not do this"),
    "raises": ("failed", "KeyError: 'nothing' (in prepare)"),
    "crash": ("crash", "it crashed with SIGSEGV in prepare"),
    "rubbish": ("protocol", "in prepare"),
}


@pytest.fixture(scope="module")
def beside(example_of_file: None) -> dict[str, ProcessResult]:
    """Race all bad contestants in one block with a good one, which must have finished; their processes by variant."""
    variants = ("", *HARMLESS, *DISQUALIFIED, *LOST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "available_memory_bytes", lambda: 2**40)  # they are small, which no race knows before
        processes = race(",".join(f"example:{each}".rstrip(":") for each in variants))
    found = {process.contestant.removeprefix("example").removeprefix(":"): process for process in processes}
    assert set(found) == set(variants)
    assert found[""].outcome == "finished", found[""].message
    assert {process.in_turn_because for process in processes} == {""}  # all of them were alive together
    return found


def test_a_contestant_that_does_its_work_has_everything_on_its_process() -> None:
    [process] = race("example")
    assert process.outcome == "finished", process.message
    assert process.headline_ns > 0
    assert {"interpreter", "numpy", "build", "first_call", "warm_up", "measured"} <= set(process.phases_s)
    assert {error.when for error in process.errors} == {"before", "changed inputs", "timed call", "after"}
    assert all(0 < error.distance < 1e-5 for error in process.errors)
    assert process.in_force["threads"] == "1"
    assert process.memory.bytes["peak"] > 1_000_000
    assert {"page_faults", "migrations", "voluntary_switches", "process_cpu_ns"} <= set(process.per_call)
    assert process.time_to_first_s() == pytest.approx(
        sum(process.phases_s[name] for name in ("interpreter", "numpy", "build", "bind", "first_call"))
    )


def test_a_model_from_another_package_is_raced() -> None:
    [process] = race("example", "example_model")
    assert process.outcome == "finished", process.message


def test_the_slower_of_two_is_measured_slower(beside: dict[str, ProcessResult]) -> None:
    assert beside["slow"].headline_ns > 2e6 > beside[""].headline_ns


@pytest.mark.parametrize("variant", HARMLESS)
def test_stray_prints_and_lingering_children_do_no_harm(variant: str, beside: dict[str, ProcessResult]) -> None:
    assert beside[variant].outcome == "finished", beside[variant].message


@pytest.mark.parametrize(("variant", "code"), DISQUALIFIED.items())
def test_other_work_is_disqualified(variant: str, code: str, beside: dict[str, ProcessResult]) -> None:
    process = beside[variant]
    assert (process.outcome, process.code) == ("disqualified", code), process.message


@pytest.mark.parametrize("variant", LOST)
def test_a_worker_that_is_lost_says_how(variant: str, beside: dict[str, ProcessResult]) -> None:
    outcome, words = LOST[variant]
    assert beside[variant].outcome == outcome
    assert words in beside[variant].message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "limits", "words"),
    [
        ("hang-prepare", Limits(prepare_s=4), "it did not finish prepare within 4 s"),
        ("hang-call", Limits(answer_s=4), "within 4 s"),
        ("hang-measure", Limits(measure_s=4), "it did not finish measure within 4 s"),
    ],
)
def test_a_hanging_worker_is_stopped_and_its_process_says_timeout(variant: str, limits: Limits, words: str) -> None:
    process = process_of(variant, limits)
    assert process.outcome == "timeout"
    assert words in process.message


def test_a_worker_that_wants_more_memory_than_it_may_have_is_out_of_memory() -> None:
    process = process_of("memory", Limits(memory_bytes=2**30))
    assert process.outcome == "out_of_memory"
    assert "1,073,741,824" in process.message


def test_a_variant_or_framework_that_is_not_there_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidRequest, match="example has no variant 'fast'"):
        race("example:fast")
    with pytest.raises(InvalidRequest, match="did you mean example"):
        race("exampel")
    with pytest.raises(InvalidRequest, match="fairlap list frameworks"):
        race("foo")
    with pytest.raises(InvalidRequest, match="did you mean mlp"):
        race("example", "mpl")


def test_a_program_that_cannot_be_run_is_a_row_with_its_reason() -> None:
    good, bad = sorted(race("example,./nothing-here"), key=lambda process: process.outcome)
    assert good.outcome == "finished"
    assert bad.outcome == "not_installed"
    assert "./nothing-here" in bad.message


class Library:
    """One for matrices."""

    def __init__(self) -> None:
        self.threads = 2

    def scipy_openblas_get_num_threads(self) -> int:
        return self.threads

    def scipy_openblas_set_num_threads(self, threads: int) -> None:
        self.threads = threads


class LoadsLate(Silence):
    """A library is loaded when the race has begun."""

    def __init__(self) -> None:
        self.loaded: list[Library] = []
        self.threads_in_blocks: list[int] = []

    def began(self, process: ProcessResult) -> None:
        self.threads_in_blocks.append(sum(each.threads for each in self.loaded))

    def block_over(self, processes: Sequence[ProcessResult]) -> None:
        self.loaded = self.loaded or [Library()]


@pytest.mark.slow
def test_a_library_for_matrices_that_is_loaded_late_has_one_thread_in_the_next_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = LoadsLate()
    monkeypatch.setattr(matrix_threads, "_loaded", lambda: iter(shown.loaded))
    Race(plan_of("example", blocks=2, rounds=2), shown).run()
    assert shown.threads_in_blocks == [0, 1]
    assert [each.threads for each in shown.loaded] == [2]


@pytest.mark.slow_but("hang-call")
@pytest.mark.parametrize("variant", ["hang-prepare", "hang-call", "hang-measure"])
def test_a_budget_ends_a_process_that_hangs_long_before_its_own_limits(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "LEAST_OF_A_REQUEST_S", 1.0)
    plan = plan_of(f"example:{variant}", limits=Limits(prepare_s=3000, answer_s=3000, measure_s=3000))
    race = run_race(plan, ending=Ending(plan, budget_s=0.5))
    [process] = race.processes
    assert (process.outcome, process.code) == ("timeout", "E_BUDGET")


@pytest.mark.slow
def test_a_budget_ends_the_turns_of_the_first_block() -> None:
    plan = plan_of("example,example:slow", rounds=1000)
    race = run_race(plan, ending=Ending(plan, budget_s=1e-3))
    assert [(each.outcome, len(each.rounds_ns)) for each in race.processes] == [("finished", 2)] * 2


_STARTS = """
import subprocess, sys, time
other = None
def call():
    global other
    if other is None:
        spins = [sys.executable, "-c", "print(flush=True)\\nwhile True: pass"]
        other = subprocess.Popen(spins, stdout=subprocess.PIPE)
        other.stdout.readline()
    time.sleep(0.01)
def alone():
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_a_callable_that_lets_another_process_work_has_a_warning(tmp_path: Path) -> None:
    (tmp_path / "starts.py").write_text(_STARTS)
    plan = draw_plan(
        tuple(contestant_named(f"python:call=starts.{name}:path={tmp_path}") for name in ("call", "alone")),
        (Work("callable", 1),),
        blocks=1,
        conditions="as-found",
        threads=1,
        available_cores=(0,),
        seed=1,
        measuring=Measuring(seconds=0.2),
    )
    race = run_race(plan)
    codes = {each.contestant.partition(":path")[0][-5:]: {w.code for w in each.warnings} for each in race.processes}
    assert {name: "W_OTHER_PROCESSES" in own for name, own in codes.items()} == {".call": True, "alone": False}
