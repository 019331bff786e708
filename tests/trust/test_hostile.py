"""Every contestant that pretends to work is disqualified or named, and no honest one is disqualified."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fairlap.machine.programs.processes import process_ids, process_stat, thread_states
from fairlap.race.equal_work import timed_work
from fairlap.race.planning.plan import Limits, Measuring
from fairlap.race.processes.one_process import ProcessRun
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.work import Mode, Precision, Work
from fairlap.scenarios.process_result import ProcessResult
from hostile_tricks.work_elsewhere import LEFT_BEHIND
from installed_package import install_frameworks
from machine_marks import needs_proc
from small_races import run_race, small_plan

pytestmark = [needs_proc, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
QUICK = Limits(start_s=60, prepare_s=60, answer_s=60, measure_s=60)

DISQUALIFIED = {
    "closure": "E_DEFERRED_WORK",
    "lazy-object": "E_DEFERRED_WORK",
    "future": "E_DEFERRED_WORK",
    "hidden-future": "E_DEFERRED_WORK",
    "late-buffer": "E_STALE_ANSWER",
    "kept-per-binding": "E_KEPT_ANSWERS",
    "every-fiftieth": "E_KEPT_ANSWERS",
    "kept-by-content": "E_KEPT_ANSWERS",
    "kept-per-contestant": "E_STALE_ANSWER",
    "previous": "E_STALE_ANSWER",
    "half-batch": "E_OUTPUT",
    "early-exit": "E_OUTPUT",
    "zero-weights": "E_OUTPUT",
    "skipped-layer": "E_OUTPUT",
    "bfloat16": "E_OUTPUT",
    "replicate-padding": "E_OUTPUT",
}
NAMED = {
    "other-process": "W_OTHER_PROCESSES",
    "more-threads": "W_MORE_THREADS",
    "busy": "W_MORE_THREADS",
    "sleeper": "W_LITTLE_CPU_TIME",
}


@pytest.fixture(autouse=True)
def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make the framework known as a package would: by an entry point."""
    frameworks = {"hostile": "hostile_framework:Hostile", "hostile-training": "hostile_training:HostileTraining"}
    install_frameworks(tmp_path_factory.mktemp("hostile"), monkeypatch, frameworks, HERE)


def process_of(contestant: str, *args: Any, **options: Any) -> ProcessResult:
    [process] = processes_of(contestant, *args, **options)
    return process


def processes_of(
    contestants: str,
    model: str = "convnet",
    mode: Mode = "infer",
    batch: int = 2,
    training: Training | None = None,
    data: str = "",
    precision: Precision = "fp32",
    rounds: int = 4,
) -> list[ProcessResult]:
    """In the order of the contestants."""
    plan = small_plan(
        contestants,
        Work(model, batch, mode, precision, training=training),
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        measuring=Measuring(seconds=0.15, rounds=rounds),
        limits=QUICK,
        data=data,
    )
    race = run_race(plan)
    return sorted(race.processes, key=lambda process: contestants.split(",").index(process.contestant))


@pytest.mark.slow_but("hidden-future", "late-buffer", "kept-by-content", "previous", "skipped-layer")
@pytest.mark.parametrize(("variant", "code"), DISQUALIFIED.items())
def test_a_contestant_that_does_other_work_is_disqualified_for_what_it_does(
    monkeypatch: pytest.MonkeyPatch, variant: str, code: str
) -> None:
    # Of a kept answer, on a quicker machine than this one may be, nothing but its repetition can be seen.
    monkeypatch.setattr(timed_work, "operations_per_second", lambda *, again=False: 5e10)
    process = process_of(f"hostile:{variant}", rounds=10)
    assert (process.outcome, process.code) == ("disqualified", code), process.message


@pytest.mark.slow_but("kept-per-binding")
@pytest.mark.parametrize("variant", ["kept-by-first-elements", "kept-per-binding", "every-fiftieth"])
def test_an_answer_that_is_kept_is_found_without_a_count_of_operations(variant: str) -> None:
    process = process_of(f"hostile:{variant}", "softmax", rounds=10)
    assert (process.outcome, process.code) == ("disqualified", "E_KEPT_ANSWERS"), process.message


@pytest.mark.slow_but("more-threads", "sleeper", "other-process")
@pytest.mark.parametrize(("variant", "code"), NAMED.items())
def test_a_contestant_that_computes_elsewhere_is_named(variant: str, code: str) -> None:
    process = process_of(f"hostile:{variant}", batch=8 if code == "W_MORE_THREADS" else 2)
    assert process.outcome == "finished", process.message
    assert code in {notice.code for notice in process.warnings}


@pytest.mark.slow_but("mlp")
@pytest.mark.parametrize("model", ["convnet", "gemm", "softmax", "mlp"])
def test_an_honest_contestant_is_not_disqualified(model: str) -> None:
    process = process_of("hostile", model)
    assert process.outcome == "finished", process.message
    found = {notice.code for notice in process.warnings}
    assert found.isdisjoint({"W_OTHER_PROCESSES", "W_LITTLE_CPU_TIME", "W_MORE_THREADS"})
    assert sum(error.when == "timed call" for error in process.errors) in range(2, 5)
    assert all(error.right for error in process.errors)


@pytest.mark.slow_but("onnxruntime")
@pytest.mark.parametrize("framework", ["torch", "onnxruntime", "jax", "openvino"])
@pytest.mark.parametrize(
    ("model", "mode"),
    [("convnet", "infer"), *(pytest.param("mlp", mode, marks=pytest.mark.slow) for mode in ("infer", "grad"))],
)
def test_a_framework_is_not_disqualified(framework: str, model: str, mode: Mode) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed; `make test` installs it")
    process = process_of(framework, model, mode)
    assert process.outcome in ("finished", "unsupported"), process.message
    assert {notice.code for notice in process.warnings}.isdisjoint({"W_OTHER_PROCESSES", "W_LITTLE_CPU_TIME"})


@pytest.mark.slow_but("left-burning")
@pytest.mark.parametrize(("variant", "named"), [("left-sleeping", False), ("left-burning", True)])
def test_what_a_contestant_leaves_behind_computes_in_no_turn_of_another_and_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, variant: str, named: bool
) -> None:
    seen: list[str] = []
    before_turns_of_the_honest(
        monkeypatch, lambda: seen.extend(state for pid in left_behind() for state in thread_states(pid))
    )
    hostile, honest = processes_of(f"hostile:{variant},hostile")
    assert (hostile.outcome, honest.outcome) == ("finished", "finished"), hostile.message + honest.message
    assert seen == ["T"] * len(honest.rounds_ns) != []
    assert ("W_OTHER_PROCESSES" in {notice.code for notice in hostile.warnings}) == named  # in its own turns
    assert left_behind() == []


def test_a_contestant_whose_left_process_computes_in_the_turn_of_another_is_disqualified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Something that is not of the contestant continues it, as a service of the system could."""

    def continue_it() -> None:
        for pid in left_behind():
            os.kill(pid, signal.SIGCONT)
            began_s = cpu_s(pid)
            while cpu_s(pid) < began_s + 0.05:
                time.sleep(0.001)

    before_turns_of_the_honest(monkeypatch, continue_it)
    hostile, honest = processes_of("hostile:left-burning,hostile")
    assert (hostile.outcome, hostile.code) == ("disqualified", "E_LEFT_RUNNING"), hostile.message
    assert honest.outcome == "finished", honest.message
    assert left_behind() == []


def before_turns_of_the_honest(monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    turn = ProcessRun.take_a_turn

    def take_a_turn(run: ProcessRun) -> None:
        if run.result.contestant == "hostile":
            do()
        turn(run)

    monkeypatch.setattr(ProcessRun, "take_a_turn", take_a_turn)


def cpu_s(pid: int) -> float:
    stat = process_stat(pid)
    return math.inf if stat is None else stat.cpu_s


def left_behind() -> list[int]:
    arguments = {pid: Path(f"/proc/{pid}/cmdline") for pid in process_ids()}
    return [pid for pid, file in arguments.items() if LEFT_BEHIND in text_of_process(file)]


def text_of_process(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it has ended, perhaps since the file was opened
        return ""


SGD = Training(Sgd(lr=0.01, momentum=0.9))
ADAMW = Training(AdamW(lr=0.001, decay=0.1), Schedule("linear", warmup=1, steps=4))
TRAINERS = {
    "doubled-rate": (SGD, "learning rate is 2 times"),
    "no-momentum": (SGD, "without momentum"),
    "other-epsilon": (ADAMW, "epsilon is 100000 times"),
    "no-schedule": (ADAMW, "schedule"),
    "coupled-decay": (ADAMW, "added to the gradient"),
    "accumulated": (ADAMW, "adds up its gradients twice"),
    "shuffled-labels": (SGD, ""),
    "repeated-batch": (SGD, "repeats a batch"),
    "late-update": (SGD, "one step too few"),
    "frozen": (SGD, "does not train at all"),
}


@pytest.mark.slow_but("no-momentum", "no-schedule", "shuffled-labels")
@pytest.mark.parametrize("variant", TRAINERS)
def test_a_contestant_that_trains_otherwise_is_disqualified_and_its_mistake_named(variant: str) -> None:
    training, mistake = TRAINERS[variant]
    process = process_of(f"hostile-training:{variant}", "mlp", "train", 4, training)
    assert (process.outcome, process.code) == ("disqualified", "E_TRAINING"), process.message
    assert mistake in process.message


@pytest.mark.slow_but("no-momentum")
@pytest.mark.parametrize("precision", ["bf16", pytest.param("autocast", marks=pytest.mark.slow)])
@pytest.mark.parametrize("variant", ["doubled-rate", "no-momentum", "accumulated", "repeated-batch", "frozen"])
def test_what_trains_otherwise_is_disqualified_in_bfloat16_too(variant: str, precision: Precision) -> None:
    process = process_of(f"hostile-training:{variant}", "mlp", "train", 4, SGD, precision=precision)
    assert (process.outcome, process.code) == ("disqualified", "E_TRAINING"), process.message


@pytest.mark.slow_but("bf16")
@pytest.mark.parametrize("precision", ["bf16", "autocast"])
def test_an_honest_trainer_is_not_disqualified_in_bfloat16(precision: Precision) -> None:
    process = process_of("hostile-training", "mlp", "train", 4, ADAMW, precision=precision)
    assert process.outcome == "finished", process.message
    [unseen] = [notice.text for notice in process.warnings if notice.code == "W_TRAINING_UNSEEN"]
    assert "epsilon" in unseen
    assert "learning rate" not in unseen.replace("schedule of the learning rate", "")


@pytest.mark.slow_but("training1")
@pytest.mark.parametrize("training", [SGD, ADAMW])
def test_an_honest_trainer_is_not_disqualified(training: Training) -> None:
    process = process_of("hostile-training", "mlp", "train", 4, training)
    assert process.outcome == "finished", process.message


FED_TRAINERS = {
    "fed-ignored": ("fed, before", ""),
    "fed-late-labels": ("fed, before", "labels of the batch before"),
    "fed-ignored-later": ("fed, after", ""),
}


@pytest.mark.slow_but("fed-late-labels")
@pytest.mark.parametrize("variant", FED_TRAINERS)
def test_a_contestant_that_trains_on_other_batches_than_it_is_fed_is_disqualified(variant: str) -> None:
    when, mistake = FED_TRAINERS[variant]
    process = process_of(f"hostile-training:{variant}", "mlp", "train", 4, SGD, data="synthetic")
    assert (process.outcome, process.code) == ("disqualified", "E_TRAINING"), process.message
    assert {error.when for error in process.errors if not error.right} == {when}
    assert mistake in process.message


@pytest.mark.slow_but("training0")
@pytest.mark.parametrize("training", [SGD, ADAMW])
def test_an_honest_trainer_that_is_fed_is_not_disqualified_and_has_its_waits(training: Training) -> None:
    process = process_of("hostile-training", "mlp", "train", 4, training, data="synthetic")
    assert process.outcome == "finished", process.message
    assert {error.when for error in process.errors} == {
        "before",
        "changed inputs",
        "fed, before",
        "fed, after",
        "after",
    }
    assert process.feeding is not None
    assert process.feeding.items == 4 * process.feeding.calls
    assert process.in_force["feed"] == "fairlap"
