"""The mark ``slow_but``: of a parametrised test, `make test` runs some cases and `make test-slow` the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest


def mark_slow_cases(items: Sequence[pytest.Item]) -> None:
    """Mark as slow what ``slow_but`` does not keep.

    ``@pytest.mark.slow_but("torch", "int8")`` keeps the cases whose id contains one of these texts, and
    ``@pytest.mark.slow_but(first=3)`` the first three. Where none would be left, as on a machine without the framework
    that the mark names, all are kept: the test's sentence is proven in any case.
    """
    cases_of: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow_but"):
            cases_of[item.nodeid.partition("[")[0]].append(item)
    for cases in cases_of.values():
        kept = [case for number, case in enumerate(cases) if _is_kept(case, number)]
        for case in cases:
            if kept and case not in kept:
                case.add_marker(pytest.mark.slow)


def _is_kept(case: pytest.Item, number: int) -> bool:
    mark = case.get_closest_marker("slow_but")
    assert mark is not None
    name = case.nodeid.partition("[")[2]
    return number < mark.kwargs.get("first", 0) or any(text in name for text in mark.args)
