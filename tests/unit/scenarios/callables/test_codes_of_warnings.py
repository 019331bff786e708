"""Every warning of `fairlap time` is printed with its code: of one callable, of one of several, and in a sandbox."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from fairlap import verdict
from fairlap.engine import time_calls
from fairlap.engine.measurement import Notice
from fairlap.scenarios.callables.answers.result import AnswersChecked
from fairlap.scenarios.callables.judging import why_not_compared
from fairlap.scenarios.callables.result import CallableRow, InProcessComparison
from fairlap.scenarios.callables.untrusted.result import UntrustedComparison, UntrustedRow

CODED = re.compile(r"\[[EW]_[A-Z_]+\]$")
PLANTED = Notice("W_MIGRATED", "it moved")
LINE = "! it moved [W_MIGRATED]"


def rows(*warned: bool) -> tuple[CallableRow, ...]:
    return tuple(
        CallableRow.of(f"callable {number}", [1.0, 1.1, 1.2], [PLANTED] if each else [])
        for number, each in enumerate(warned)
    )


def compared(*warned: bool) -> InProcessComparison:
    return InProcessComparison(
        rows=rows(*warned),
        comparisons=(),
        standing=None,
        blocks=3,
        seconds=0.1,
        elapsed_s=1.0,
        seed=1,
        baseline="",
        until_decided=False,
        interrupted=False,
        ended_early="",
        excluded={},
        why_no_verdict="",
        answers=AnswersChecked("each other"),
    )


def test_of_one_callable() -> None:
    assert LINE in str(replace(time_calls(int, samples=10, warmup=0), warnings=(PLANTED,)))


def test_of_one_of_several_below_its_row_and_of_all_once() -> None:
    assert LINE in [line.strip() for line in str(compared(True, False)).splitlines()]
    assert str(compared(True, True)).count(LINE) == 1
    assert LINE not in str(compared(False, False))


@pytest.mark.parametrize(("of_other", "lines"), [([1.0] * 8, 1), ([1.0, 1.01] * 4, 0)])
def test_of_blocks_that_all_had_the_same_ratio(of_other: list[float], lines: int) -> None:
    figures = {"callable 0": verdict.Figures("wall_ns", [1.0] * 8), "callable 1": verdict.Figures("wall_ns", of_other)}
    judged = verdict.judge([verdict.block_table(figures, evidence="within one process")])
    assert str(replace(compared(False, False), comparisons=judged)).count("[W_NO_SPREAD]") == lines


def test_of_one_in_a_sandbox() -> None:
    figure = verdict.contestant_figure(np.log([1.0, 1.1]))
    row = UntrustedRow("mine.py:kernel", (1.0, 1.1), figure, 3, (PLANTED,))
    found = UntrustedComparison((row,), (), None, {}, None, None, False, 1, 2, 1.0, 1, "", "")
    assert LINE in str(found)


def test_of_what_keeps_callables_from_being_compared() -> None:
    why, code = why_not_compared(1, 6)
    found = replace(compared(False, False), excluded={"callable 0": "it works on"}, why_no_verdict=why)
    marked = [line for line in str(found).splitlines() if line.strip().startswith("!")]
    assert len(marked) == 2
    assert all(CODED.search(line) for line in marked)
    assert (code, why_not_compared(2, 1)[1], why_not_compared(2, 2)) == ("W_ONE_RANKED", "W_TOO_FEW_BLOCKS", ("", ""))
