"""Parameters of which some run in `make test` and the others in `make test-thorough`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def thorough_where(is_thorough: Callable[[Any], bool], parameters: Iterable[Any]) -> list[Any]:
    """For ``pytest.mark.parametrize``; a tuple is the values of several names."""
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)), marks=[pytest.mark.thorough] if is_thorough(each) else []
        )
        for each in parameters
    ]
