"""The mark ``slow_but`` leaves some cases of a test to `make test`, and never none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from slow_cases import mark_slow_cases

CASES = ("torch-fp32", "torch-int8", "jax-fp32", "numpy-fp32")


def kept_by(*texts: str, **first: int) -> list[str]:
    """Return the cases that are not marked, of a test with this mark beside one without it."""
    mark = pytest.mark.slow_but(*texts, **first).mark
    marked: list[str] = []
    items: list[Any] = [
        SimpleNamespace(
            nodeid=f"a.py::test_{name}[{case}]",
            get_closest_marker=lambda _, mark=mark if name == "cases" else None: mark,
            add_marker=lambda added, case=f"{name}: {case}": marked.append(f"{case}: {added.name}"),
        )
        for case in CASES
        for name in ("cases", "others")
    ]
    mark_slow_cases(items)
    return [case for case in CASES if f"cases: {case}: slow" not in marked and f"others: {case}: slow" not in marked]


def test_cases_whose_id_contains_a_text_of_the_mark_are_kept() -> None:
    assert kept_by("int8", "numpy") == ["torch-int8", "numpy-fp32"]


def test_the_first_ones_are_kept_where_the_mark_has_a_number() -> None:
    assert kept_by(first=2) == ["torch-fp32", "torch-int8"]
    assert kept_by("numpy", first=1) == ["torch-fp32", "numpy-fp32"]


def test_all_are_kept_where_none_would_be_left() -> None:
    assert kept_by("tensorflow") == list(CASES)
