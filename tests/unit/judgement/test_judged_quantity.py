"""CPU time or peak memory may decide in place of time; peaks that hardly vary make no gain of a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairlap
import msgspec
import pytest
from command_line import invoke, refusal
from fairlap.errors import FairlapError
from fairlap.judgement import judge as judge_module
from fairlap.judgement.judge_request import Quantity
from fairlap.judgement.judgement import Judgement
from fairlap.judgement.ledger import read_ledger
from fairlap.judgement.race_of_sides import Question, judged
from fairlap.meters.memory import Memory
from fairlap.verdict import ONE_SIDE
from saved_runs import saved_run

MIB = 2**20
PAGE = 4096


def shown(
    base: Callable[[int], float],
    change: Callable[[int], float],
    *,
    quantity: Quantity = "memory_peak",
    gain: float = 0.01,
    blocks: int = 24,
) -> Judgement:
    """Judge sides whose times are equal, and whose figures are these in each block."""
    run = saved_run({"base": 1e6, "change": 1e6}, blocks=blocks)
    for each in run.processes:
        figure = (base if each.contestant == "base" else change)(each.block)
        each.memory = Memory({"peak": int(figure)})
        each.per_call = {"process_cpu_ns": figure}
    question = Question(gain, ONE_SIDE, quantity)
    return judged(run.plan, run.processes, question, ended=True, seconds=24.0)


def test_less_memory_or_cpu_time_is_kept_and_more_is_discarded_although_the_times_are_equal() -> None:
    for quantity in ("memory_peak", "cpu_time"):
        less = shown(lambda block: 100 * MIB + block, lambda block: 80 * MIB - block, quantity=quantity)
        assert (less.decision, less.reason, less.quantity) == ("keep", "faster", quantity)
        assert less.speedup == pytest.approx(1.25, rel=1e-3)
        more = shown(lambda block: 80 * MIB, lambda block: 100 * MIB, quantity=quantity)
        assert (more.decision, more.reason) == ("discard", "slower")


@pytest.mark.parametrize("pages", [0, 1, -1])
def test_peaks_that_never_vary_are_decided_and_a_page_is_no_gain(pages: int) -> None:
    found = shown(lambda block: 100 * MIB, lambda block: 100 * MIB + pages * PAGE)
    assert found.decision == "discard"
    assert found.reason == ("slower" if pages > 0 else "not_faster_by_gain")
    assert found.spread == pytest.approx(0, abs=1e-9)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(1, abs=1e-4)
    assert found.interval.high == pytest.approx(1, abs=1e-4)


def test_ties_alone_never_keep_a_change_however_small_the_gain() -> None:
    found = shown(lambda block: 100 * MIB, lambda block: 100 * MIB, gain=0.0)
    assert found.decision == "undecided"


def test_a_figure_that_a_process_lacks_is_an_error_with_the_reason() -> None:
    run = saved_run({"base": 1e6, "change": 1e6})
    for each in run.processes:
        each.memory = Memory({}, {"peak": "it is below 7 MB"})
    with pytest.raises(FairlapError, match="below 7 MB") as raised:
        judged(run.plan, run.processes, Question(0.01, ONE_SIDE, "memory_peak"), ended=True, seconds=1.0)
    assert raised.value.code == "E_QUANTITY"


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Replace the race by one in which every change needs less; returns what was asked of each."""
    asked: list[Question] = []

    def race(plan: None, question: Question, budget_s: float | None, progress_for: Any) -> Judgement:
        asked.append(question)
        found = shown(lambda block: 100 * MIB, lambda block: 80 * MIB, gain=question.gain)
        return msgspec.structs.replace(found, quantity=question.quantity)

    plan = saved_run({"base": 1e6, "change": 1e6}).plan
    monkeypatch.setattr(judge_module, "planned", lambda *_: plan)
    monkeypatch.setattr(judge_module, "raced", race)
    return asked


def test_memory_has_a_gain_by_default_and_takes_none_of_0(folders: Path, questions: list[Question]) -> None:
    for quantity, gain in (("wall", 0.0), ("cpu_time", 0.0), ("memory_peak", 0.01)):
        found = fairlap.judge("one", "two", command="./run", quantity=quantity)
        assert (found.quantity, questions[-1].quantity, questions[-1].gain) == (quantity, quantity, gain)
    sides = ("judge", "--base", "one", "--change", "two", "--command", "./run")
    assert refusal(*sides, "--quantity", "memory_peak", "--gain", "0%").code == "E_JUDGE"
    assert refusal(*sides, "--quantity", "cpu_time", "--reported", "number").code == "E_JUDGE"
    assert len(questions) == 3


def test_a_ledger_has_one_quantity_and_confirms_by_it(folders: Path, questions: list[Question]) -> None:
    fairlap.judge("one", "two", command="./run", quantity="memory_peak", ledger="tries.json")
    [tried] = read_ledger(folders / "tries.json").tries
    assert (tried.judged_by, tried.gain, tried.outcome) == ("memory_peak", 0.01, "keep")
    sides = ("judge", "--base", "two", "--change", "three", "--command", "./run", "--ledger", "tries.json")
    assert refusal(*sides).code == "E_JUDGE"
    assert refusal("judge", "--ledger", "tries.json", "--confirm", "--quantity", "wall").code == "E_JUDGE"
    assert invoke("judge", "--ledger", "tries.json", "--confirm", "-q").exit_code == 0
    assert questions[-1] == Question(0.01, tried_level(folders), "memory_peak")


def tried_level(folders: Path) -> float:
    return read_ledger(folders / "tries.json").tries[-1].level


def test_a_ledger_by_time_is_written_as_before(folders: Path, questions: list[Question]) -> None:
    fairlap.judge("one", "two", command="./run", ledger="tries.json")
    assert b"quantity" not in (folders / "tries.json").read_bytes()
