"""Right callables that compute in another order use a small part of the tolerance; one that cancels exceeds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from callables_opened import OpenedCallables

SUM = """
def draw(rng): return rng.random(1_000_000, np.float32)
def ref(x): return x.sum()
def other(x): return np.cumsum(x)[-1]  # rounds after each term
"""
PRODUCT = """
def draw(rng): return rng.standard_normal((64, 4096), np.float32), rng.standard_normal(4096).astype(np.float32)
def ref(x, w): return x @ w
def other(x, w): return np.cumsum(x * w, axis=1)[:, -1]
"""
SOFTMAX = """
def draw(rng): return rng.standard_normal((64, 1000), np.float32)
def ref(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
def other(x):
    e = np.exp(x)
    return e / np.cumsum(e, axis=1)[:, -1:]
"""
SUMS = """
def draw(rng): return rng.standard_normal(200_000)
def ref(x): return np.cumsum(x)
def other(x):
    within = np.cumsum(x.reshape(-1, 1000), axis=1)
    return (within + np.concatenate([[0], np.cumsum(within[:, -1])[:-1]])[:, None]).reshape(-1)
"""
NORM = """
def draw(rng): return rng.standard_normal((32, 256)).astype(np.float16)
def ref(x): return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
def other(x): return ref(x.astype(np.float32)).astype(np.float16)
"""
VARIANCE = """
def draw(rng): return rng.random((64, 1000), np.float32) + np.float32(3)
def ref(x): return x.var(axis=1)
def other(x): return (x * x).mean(axis=1) - x.mean(axis=1) ** 2
"""


def share_of_tolerance(opened: OpenedCallables, name: str) -> float:
    exact = opened.materials.reference("inputs")["answer"]
    off = np.abs(opened.answer(name)["answer"].astype(np.float64) - exact)
    allowed = opened.materials.tolerance("answer")
    return float((off / np.maximum(allowed.absolute, allowed.relative * np.abs(exact))).max())


@pytest.mark.slow_but("sums", "softmax")
@pytest.mark.parametrize("code", [SUM, PRODUCT, SOFTMAX, SUMS, NORM], ids=["sum", "product", "softmax", "sums", "norm"])
def test_another_order_uses_less_than_a_quarter(code: str, tmp_path: Path) -> None:
    assert 0 < share_of_tolerance(OpenedCallables(tmp_path, code), "other") < 0.25


def test_a_variance_that_cancels_is_wrong(tmp_path: Path) -> None:
    assert share_of_tolerance(OpenedCallables(tmp_path, VARIANCE), "other") > 1


EQUAL = """
def draw(rng): return np.full(9_216, rng.choice([2.437, 0.1, 1 / 3]), np.float32)
def ref(x): return x.sum()
def other(x): return np.cumsum(x)[-1]
"""
EQUAL_PRODUCTS = """
def draw(rng): return np.full((8, 8_192), rng.choice([0.7, 1 / 3]), np.float32), np.full(8_192, 0.1, np.float32)
def ref(x, w): return x @ w
def other(x, w): return np.cumsum(x * w, axis=1)[:, -1]
"""


@pytest.mark.parametrize("code", [EQUAL, EQUAL_PRODUCTS], ids=["sum", "product"])
def test_equal_terms_may_be_added_one_after_the_other(code: str, tmp_path: Path) -> None:
    opened = OpenedCallables(tmp_path, code)
    assert 0 < share_of_tolerance(opened, "other") < 1
    assert opened.materials.tolerance("answer").relative < 1e-3
