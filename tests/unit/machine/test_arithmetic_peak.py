"""The bound for what contestants can do is never below what was seen."""

from __future__ import annotations

import pytest
from fairlap.machine import arithmetic_peak


@pytest.mark.parametrize(("product", "native"), [(3e11, 2e11), (2e11, 3e11)])
def test_the_higher_of_both_measurements_counts(monkeypatch: pytest.MonkeyPatch, product: float, native: float) -> None:
    monkeypatch.setattr(arithmetic_peak, "_measured", 0.0)
    monkeypatch.setattr(arithmetic_peak, "_product", lambda: product)
    monkeypatch.setattr(arithmetic_peak, "_native", lambda: native)
    assert arithmetic_peak.operations_per_second() == 3e11


def test_measuring_again_never_lowers_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic_peak, "_measured", 0.0)
    figures = iter([3e11, 1e11])
    monkeypatch.setattr(arithmetic_peak, "_product", lambda: next(figures))
    monkeypatch.setattr(arithmetic_peak, "_native", lambda: 0.5e11)
    assert arithmetic_peak.operations_per_second() == 3e11
    assert arithmetic_peak.operations_per_second(again=True) == 3e11
