"""Gradients by the chain rule are those that small differences show, for every operation that a reference uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fairlap.models.checks.derivatives import NotDifferentiable
from fairlap.models.checks.differentiation import gradients
from scipy.special import erf  # type: ignore[import-untyped,unused-ignore]

STEP = 1e-6
WINDOWS = np.lib.stride_tricks.sliding_window_view
MASK = np.array([[True, False, True], [False, True, True]])

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "add a row to all rows": lambda a, b: a + b[0],
    "subtract": lambda a, b: a - b,
    "subtract from a constant": lambda a, _: 1.0 - a,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / (b + 3.0),
    "divide a constant": lambda a, _: 2.0 / (a + 3.0),
    "power": lambda a, _: a**3,
    "negative": lambda a, _: -a,
    "square": lambda a, _: np.square(a),
    "square root": lambda a, _: np.sqrt(a + 3.0),
    "exp": lambda a, _: np.exp(a),
    "log": lambda a, _: np.log(a + 3.0),
    "tanh": lambda a, _: np.tanh(a),
    "erf": lambda a, _: erf(a),
    "maximum": lambda a, b: np.maximum(a, b),
    "minimum": lambda a, b: np.minimum(a, b),
    "clip": lambda a, _: np.clip(a, -0.5, 0.5),
    "where": lambda a, b: np.where(MASK, a, b),
    "where with a constant": lambda a, _: np.where(MASK, a, -1.0),
    "product of matrices": lambda a, b: a @ b.T,
    "roll": lambda a, _: np.roll(a, 1, -1) * a,
    "product of stacks": lambda a, b: np.stack([a, b]) @ b.T,
    "product with a vector": lambda a, b: a @ b[0],
    "product of a vector": lambda a, b: a[0] @ b.T,
    "product of vectors": lambda a, b: a[0] @ b[1],
    "einsum": lambda a, b: np.einsum("ij,kj->ik", a, b),
    "sum": lambda a, _: a.sum(),
    "sum of an axis": lambda a, _: a.sum(axis=0),
    "mean that keeps axes": lambda a, _: a - a.mean(axis=1, keepdims=True),
    "mean by its function": lambda a, _: np.mean(a**2, axis=-1, keepdims=True),
    "largest": lambda a, _: a.max(),
    "largest of an axis": lambda a, _: a.max(axis=-1, keepdims=True) * a,
    "largest of two axes": lambda a, b: np.stack([a, b], axis=1).max(axis=(0, 2)),
    "reshape": lambda a, b: a.reshape(3, 2) @ b,
    "transpose": lambda a, b: np.stack([a, b]).transpose(2, 0, 1) ** 2,
    "swapaxes": lambda a, b: a.swapaxes(0, 1) @ b,
    "a part": lambda a, _: a[:, 1:],
    "the same row twice": lambda a, _: a[[0, 1, 0]] ** 2,
    "parts that overlap, and the whole": lambda a, _: a[:, 1:] * a[:, :2] + a.sum() + a[0, 0],
    "a part, then its whole": lambda a, _: np.exp(a)[:, ::2].sum() + (np.exp(a) * a).sum(),
    "a whole that is also a part": lambda a, b: (lambda each: each[:, 1:].sum() * each + each * b)(a * b),
    "an axis of a number": lambda a, _: a.sum()[None] ** 2 + a.sum()[...],
    "a new axis": lambda a, b: a[:, None, :] * b,
    "concatenate": lambda a, b: np.concatenate((a, b), axis=1) ** 2,
    "split": lambda a, _: np.split(a, 3, axis=-1)[1] ** 2,
    "pad": lambda a, _: np.pad(a, ((1, 1), (0, 2))) ** 2,
    "windows": lambda a, _: WINDOWS(a, (2, 2), axis=(0, 1)) ** 2,
    "windows two apart": lambda a, _: WINDOWS(a, (1, 2), axis=(0, 1))[:, ::2] ** 2,
    "elements along an axis": lambda a, _: np.take_along_axis(a, np.array([[2], [0]]), axis=1) ** 2,
    "a value that is used twice": lambda a, _: np.exp(a) * np.exp(a) + a,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_gradient_of_an_operation_is_what_small_differences_show(name: str) -> None:
    operation = OPERATIONS[name]
    rng = np.random.default_rng(7)
    arrays = {"a": rng.normal(size=(2, 3)), "b": rng.normal(size=(2, 3))}
    weights = rng.normal(size=np.shape(operation(arrays["a"], arrays["b"])))

    def loss(held: Any) -> Any:
        return (operation(held["a"], held["b"]) * weights).sum()

    value, found = gradients(loss, arrays)
    assert value == pytest.approx(float(loss(arrays)))
    for key, array in arrays.items():
        for place in np.ndindex(array.shape):
            ahead, behind = array.copy(), array.copy()
            ahead[place] += STEP
            behind[place] -= STEP
            slope = (float(loss({**arrays, key: ahead})) - float(loss({**arrays, key: behind}))) / (2 * STEP)
            assert found[key][place] == pytest.approx(slope, abs=1e-7), (key, place)


def test_at_its_kink_the_slope_of_a_relu_is_zero() -> None:
    _, found = gradients(lambda held: np.maximum(held["a"], 0.0).sum(), {"a": np.array([-1.0, 0.0, 1.0])})
    assert found["a"].tolist() == [0.0, 0.0, 1.0]


def test_of_equal_largest_elements_the_first_one_counts() -> None:
    _, found = gradients(lambda held: held["a"].max(), {"a": np.array([1.0, 2.0, 2.0])})
    assert found["a"].tolist() == [0.0, 1.0, 0.0]


def test_a_weight_that_the_loss_does_not_use_has_zeros() -> None:
    value, found = gradients(lambda held: held["a"].sum(), {"a": np.ones(2), "b": np.ones(3)})
    assert value == 2.0
    assert found["b"].tolist() == [0.0, 0.0, 0.0]
    _, found = gradients(lambda _: np.float64(1.0), {"a": np.ones(2)})
    assert found["a"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "operation", [lambda a: np.sort(a), lambda a: np.cosh(a), lambda a: np.asarray(a), lambda a: 2.0**a]
)
def test_an_operation_without_a_rule_is_refused(operation: Callable[[Any], Any]) -> None:
    with pytest.raises(NotDifferentiable):
        gradients(lambda held: operation(held["a"]).sum(), {"a": np.ones(2)})


def test_the_gradient_of_float32_stays_float32() -> None:
    _, found = gradients(lambda held: np.tanh(held["a"] * 2.0).mean(), {"a": np.ones(4, np.float32)})
    assert found["a"].dtype == np.float32
