"""Every warning of `fairlap time` is printed with its code: of one callable, of one of several, and in a sandbox."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from fairlap import verdict
from fairlap.engine import time_calls
from fairlap.engine.measurement import Notice
from fairlap.scenarios.callables.answers.result import AnswersChecked
from fairlap.scenarios.callables.result import CallableRow, InProcessComparison
from fairlap.scenarios.callables.untrusted.result import UntrustedComparison, UntrustedRow

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


def test_of_one_in_a_sandbox() -> None:
    figure = verdict.contestant_figure(np.log([1.0, 1.1]))
    row = UntrustedRow("mine.py:kernel", (1.0, 1.1), figure, 3, (PLANTED,))
    found = UntrustedComparison((row,), (), None, {}, None, None, False, 1, 2, 1.0, 1, "", "")
    assert LINE in str(found)
