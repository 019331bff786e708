"""Gradients are right when they are the slopes of the reference, and every way of being wrong shows."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.elementary import gelu, layer_norm, linear, softmax
from fairlap.bench_models.mlp.spec import EPSILON
from fairlap.models.arrays import Arrays
from fairlap.models.checks import gradient_check
from fairlap.models.checks.gradient_check import gradient_disagreements, possible_slopes, slopes, unusable
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from scipy.special import ndtr  # type: ignore[import-untyped,unused-ignore]
from workloads_of_models import workload_of

Array = npt.NDArray[Any]

NAMES = [weight.name for weight in find("mlp").spec.weights]
ALLOWED = 1e-3  # of a contestant in float32


def mlp_gradients(work: Workload) -> dict[str, Array]:
    """Compute the perceptron's gradients by hand, so that what judges gradients is judged without a framework."""
    assert work.labels is not None
    weights = {name: array.astype(np.float64) for name, array in work.weights.items()}
    image = work.inputs["image"].astype(np.float64)
    first = linear(image, weights, "first")
    activated = gelu(first)
    normed = layer_norm(activated, weights, "norm", EPSILON)
    second = linear(normed, weights, "second")
    activated_again = gelu(second)
    shares = softmax(linear(activated_again, weights, "third"))

    gradients: dict[str, Array] = {}
    back = (shares - np.eye(shares.shape[1])[work.labels]) / len(image)
    back = _through_linear(gradients, weights, "third", activated_again, back) * _gelu_slope(second)
    back = _through_linear(gradients, weights, "second", normed, back)
    back = _through_norm(gradients, weights, "norm", activated, back) * _gelu_slope(first)
    _through_linear(gradients, weights, "first", image, back)
    return gradients


def _through_linear(gradients: dict[str, Array], weights: Arrays, name: str, inputs: Array, back: Array) -> Array:
    gradients[f"{name}.weight"] = back.T @ inputs
    gradients[f"{name}.bias"] = back.sum(axis=0)
    before: Array = back @ weights[f"{name}.weight"]
    return before


def _through_norm(gradients: dict[str, Array], weights: Arrays, name: str, inputs: Array, back: Array) -> Array:
    centred = inputs - inputs.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + EPSILON)
    standard = centred / scale
    gradients[f"{name}.weight"] = (back * standard).sum(axis=0)
    gradients[f"{name}.bias"] = back.sum(axis=0)
    inner = back * weights[f"{name}.weight"]
    along = standard * (inner * standard).mean(axis=-1, keepdims=True)
    before: Array = (inner - inner.mean(axis=-1, keepdims=True) - along) / scale
    return before


def _gelu_slope(inputs: Array) -> Array:
    slope: Array = ndtr(inputs) + inputs * np.exp(-(inputs**2) / 2) / np.sqrt(2 * np.pi)
    return slope


@cache
def prepared() -> tuple[Workload, list[list[float]], dict[str, np.ndarray]]:
    work = workload_of("mlp", mode="grad", batch=4)
    return work, [slopes(work)], mlp_gradients(work)


def worst(**changed: np.ndarray) -> float:
    work, expected, right = prepared()
    return max(gradient_disagreements(work, {**right, **changed}, expected))


def test_gradients_worked_out_by_hand_agree_to_four_digits() -> None:
    work, expected, right = prepared()
    assert len(expected[0]) == 3
    assert max(gradient_disagreements(work, right, expected)) < 1e-4


def test_gradients_in_float32_agree_well_within_what_is_allowed() -> None:
    work, expected, right = prepared()
    rounded = {name: gradient.astype(np.float32) for name, gradient in right.items()}
    assert max(gradient_disagreements(work, rounded, expected)) < ALLOWED / 1000


@pytest.mark.parametrize("name", NAMES)
def test_a_single_weight_without_its_gradient_is_caught(name: str) -> None:
    assert worst(**{name: np.zeros_like(prepared()[2][name])}) > ALLOWED


@pytest.mark.parametrize("name", NAMES)
def test_a_single_gradient_turned_round_is_caught(name: str) -> None:
    assert worst(**{name: -prepared()[2][name]}) > ALLOWED


def test_gradients_of_a_sum_instead_of_a_mean_are_caught() -> None:
    assert worst(**{name: 4 * gradient for name, gradient in prepared()[2].items()}) > 0.1


def test_a_transposed_square_gradient_is_caught() -> None:
    assert worst(**{"second.weight": prepared()[2]["second.weight"].T}) > ALLOWED


def test_gradients_of_other_inputs_are_caught() -> None:
    _, expected, _ = prepared()
    other = workload_of("mlp", mode="grad", batch=4, seed=1)
    assert max(gradient_disagreements(prepared()[0], mlp_gradients(other), expected)) > 0.1


@pytest.mark.parametrize(
    ("gradient", "reason"),
    [
        (np.zeros((10, 255)), "the gradient of third.weight has the shape [10, 255], not [10, 256]"),
        (np.zeros((256, 10)), "the gradient of third.weight has the shape [256, 10], not [10, 256]"),
        (np.full((10, 256), np.nan), "the gradient of third.weight is not finite everywhere"),
        (None, "the gradient of third.weight is missing"),
    ],
)
def test_gradients_without_a_slope_disagree_without_bound_and_say_why(gradient: np.ndarray | None, reason: str) -> None:
    work, expected, right = prepared()
    given = {name: each for name, each in right.items() if name != "third.weight"}
    if gradient is not None:
        given["third.weight"] = gradient
    assert unusable(work, given) == reason
    assert gradient_disagreements(work, given, expected) == [math.inf] * 3
    assert unusable(work, right) == ""


def test_directions_are_the_same_each_time() -> None:
    work, expected, _ = prepared()
    assert [slopes(work)] == expected


def test_a_smooth_loss_has_one_set_of_slopes() -> None:
    work = workload_of("gemm", mode="grad", batch=1)
    assert possible_slopes(work) == [slopes(work)]


def test_at_a_kink_the_slopes_of_either_side_are_right_and_none_between(monkeypatch: pytest.MonkeyPatch) -> None:
    work = workload_of("gemm", mode="grad", batch=1)
    weight = work.weights["right"].astype(np.float64)
    linear = np.random.default_rng(1).normal(size=weight.shape)
    tallest = np.unravel_index(np.abs(weight).argmax(), weight.shape)

    def loss_at(_: object, weights: dict[str, np.ndarray], __: object) -> float:
        bent = max(0.0, weights["right"][tallest] - weight[tallest] - 1e-12)
        return float((linear * weights["right"]).sum() + 500 * bent)

    monkeypatch.setattr(gradient_check, "loss_at", loss_at)
    possible = possible_slopes(work)
    assert len(possible) > 1
    for steepness, right in ((0, True), (500, True), (250, False)):
        gradient = linear.copy()
        gradient[tallest] += steepness
        assert (max(gradient_disagreements(work, {"right": gradient}, possible)) < 1e-3) == right


@pytest.mark.parametrize("batch", [1, 3])
def test_the_gradient_of_a_matrix_product_is_the_product_with_the_other_matrix(batch: int) -> None:
    work = workload_of("gemm", mode="grad", batch=batch)
    left, right = work.inputs["left"].astype(np.float64), work.weights["right"].astype(np.float64)
    product = left @ right
    gradient = np.einsum("bri,brc->ic", left, product) * 2 / product.size
    assert max(gradient_disagreements(work, {"right": gradient}, [slopes(work)])) < 1e-4
