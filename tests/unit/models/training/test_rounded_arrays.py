"""Arrays that round: every result has eight bits, gradients too, and references need no change for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fairlap.models.checks.differentiation import Traced, gradients
from fairlap.models.draw import rounded_to_bfloat16
from fairlap.models.training.rounded_arrays import Rounded, WithRoundedProducts, bare

RNG = np.random.default_rng(1)
ONE, OTHER = (RNG.normal(size=(6, 6)).astype(np.float32) for _ in range(2))
IMAGE, KERNEL = RNG.normal(size=(2, 3, 8, 8)).astype(np.float32), RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)


def has_eight_bits(array: Any) -> bool:
    return np.array_equal(bare(array), rounded_to_bfloat16(bare(array)).reshape(array.shape))


def convolved(image: Any, kernel: Any) -> Any:
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", windows, kernel, optimize=True)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda one, other: one + other,
    "divide": lambda one, other: one / other,
    "square root": lambda one, _other: np.sqrt(one * one + 1.0),
    "power": lambda one, _other: one**2,
    "sum": lambda one, _other: one.sum(axis=0),
    "sum of all": lambda one, _other: one.sum(),
    "mean": lambda one, _other: np.mean(one, axis=1, keepdims=True),
    "matrix product": lambda one, other: one @ other.T,
    "einsum": lambda one, other: np.einsum("ij,kj->ik", one, other, optimize=True),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_computed_in_float32_and_rounded_once(name: str) -> None:
    one, other = Rounded.of(ONE), Rounded.of(OTHER)
    found = OPERATIONS[name](one, other)
    assert isinstance(found, Rounded)
    assert has_eight_bits(found)
    if name not in ("square root", "mean"):  # those are several operations
        exact = np.asarray(OPERATIONS[name](bare(one), bare(other)))
        assert np.array_equal(bare(found), rounded_to_bfloat16(exact).reshape(exact.shape))


def test_comparisons_and_what_only_moves_numbers_stay_as_they_are() -> None:
    one = Rounded.of(ONE)
    assert (one > 0.0).dtype == bool
    assert np.array_equal(bare(np.concatenate([one, one])), np.concatenate([bare(one), bare(one)]))
    assert np.array_equal(bare(np.pad(one, ((1, 1), (0, 0)))), np.pad(bare(one), ((1, 1), (0, 0))))
    assert isinstance(np.where(ONE > 0, one, 0.0), Rounded)


def test_only_products_are_rounded_where_only_they_shall_be() -> None:
    one, other = WithRoundedProducts.of(ONE), WithRoundedProducts.of(OTHER)
    assert np.array_equal(bare(one), ONE)
    assert np.array_equal(bare(one + other), ONE + OTHER)
    exact = rounded_to_bfloat16(ONE) @ rounded_to_bfloat16(OTHER)
    assert np.array_equal(bare(one @ other), rounded_to_bfloat16(exact))


@pytest.mark.parametrize("kind", [Rounded, WithRoundedProducts])
def test_gradients_are_rounded_and_near_the_exact_ones(kind: type[Rounded]) -> None:
    def loss(weights: Any) -> Any:
        hidden = np.maximum(convolved(kind.of(IMAGE), weights["kernel"]), 0.0)
        return (hidden.mean(axis=(2, 3)) @ weights["head"]).sum()

    def exact_loss(weights: Any) -> Any:
        hidden = np.maximum(convolved(IMAGE.astype(np.float64), weights["kernel"]), 0.0)
        return (hidden.mean(axis=(2, 3)) @ weights["head"]).sum()

    head = RNG.normal(size=(4, 5)).astype(np.float32)
    _, rounded = gradients(loss, {"kernel": kind.of(KERNEL), "head": kind.of(head)})
    _, exact = gradients(exact_loss, {"kernel": KERNEL.astype(np.float64), "head": head.astype(np.float64)})
    for name, gradient in rounded.items():
        assert has_eight_bits(gradient)
        away = np.linalg.norm(gradient - exact[name]) / np.linalg.norm(exact[name])
        assert 1e-4 < away < 2e-2


def test_a_traced_array_goes_first() -> None:
    for found in (Rounded.of(ONE) @ Traced(Rounded.of(OTHER)), np.add(Rounded.of(ONE), Traced(ONE))):
        assert isinstance(found, Traced)
