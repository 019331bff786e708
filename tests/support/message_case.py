"""What a function that provokes a message returns, and the shorthands for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import FairlapError
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.worker.protocol import Failed

Made = tuple[str, str]
"""The code and the text."""
Case = Callable[[Path, pytest.MonkeyPatch], Made]

CASES: dict[str, Case] = {}
WORK = Work("mlp", 4)
PLAN = draw_plan(
    Contestants("torch,jax"), (WORK,), blocks=1, conditions="controlled", threads=1, available_cores=(0,), seed=1
)


def case(code: str) -> Callable[[Case], Case]:
    def kept(function: Case) -> Case:
        CASES[code] = function
        return function

    return kept


def raised(function: Callable[..., object], *arguments: Any, **named: Any) -> Made:
    with pytest.raises(FairlapError) as caught:
        function(*arguments, **named)
    return caught.value.code, str(caught.value)


def noticed(notices: Any) -> Made:
    [notice] = notices
    return notice.code, notice.text


def turned(found: tuple[str, str]) -> Made:
    text, code = found
    return code, text


def failure(failed: Failed) -> Made:
    return failed.code, failed.message
