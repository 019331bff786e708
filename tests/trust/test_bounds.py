"""The bound of three models of which it is certain, in three frameworks, in a race on this machine."""

from __future__ import annotations

import sys

import pytest

from .bounds import CONTESTANTS, EXPECTED, raced


@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="the sizes of the caches are read from Linux")
def test_a_triad_is_bound_by_memory_a_product_by_arithmetic_and_an_empty_call_by_its_overhead() -> None:
    for framework in CONTESTANTS.split(","):
        pytest.importorskip(framework)
    rows = list(raced(0, 1, 0.05))
    assert {(row.workload, row.contestant): row.bound for row in rows} == {
        (model, contestant): bound for model, bound in EXPECTED.items() for contestant in CONTESTANTS.split(",")
    }
