"""Sums of float32 in any order are right, also of equal numbers; wrong ones of the same numbers are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.checks.long_sums import Addends
from fairlap.models.sources.allowances import widened_by_long_sums
from fairlap.models.sources.proof import ROUNDING, Outputs, outputs_of, tolerances
from fairlap.models.spec import Tolerance
from orders_of_summation import LENGTHS, NUMBERS, ORDERS, Array, of_photo, one_by_one


def mean(_weights: Any, inputs: Any) -> dict[str, Array]:
    return {"mean": np.asarray(inputs["photo"].mean(dtype=np.float64 if inputs["photo"].dtype == np.float64 else None))}


def allowed_for(forward: Any, inputs: dict[str, Array], weights: dict[str, Array]) -> tuple[Outputs, Tolerance]:
    reference = outputs_of(forward, weights, inputs)
    allowed = tolerances(forward, weights, inputs, reference)
    (name,) = reference
    return reference, widened_by_long_sums(allowed, forward, weights, inputs, reference)["fp32"][name]


@pytest.mark.slow_but("white")
@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("kind", NUMBERS)
def test_a_mean_is_right_in_every_order(kind: str, count: int) -> None:
    photo = NUMBERS[kind](count)
    reference, tolerance = allowed_for(mean, {"photo": photo}, {})
    for order in ORDERS:
        answer = np.asarray(np.float32(order(photo)) / np.float32(count))
        assert output_errors("mean", answer, reference["mean"], tolerance).right


def test_added_one_by_one_a_plain_photo_loses_more_than_random_roundings_do() -> None:
    photo = NUMBERS["a white photo, normalised"](9_216)
    off = abs(one_by_one(photo) / math.fsum(photo.astype(np.float64)) - 1)
    assert off > 6e-5
    _, tolerance = allowed_for(mean, {"photo": photo}, {})
    assert tolerance.relative <= 9_216 / 2 * ROUNDING


def test_of_different_numbers_nothing_more_is_allowed() -> None:
    different = np.random.default_rng(3).random(9_216, np.float32)
    inputs = {"photo": different}
    reference = outputs_of(mean, {}, inputs)
    before = tolerances(mean, {}, inputs, reference)
    assert widened_by_long_sums(before, mean, {}, inputs, reference) == before


def network(weights: Any, inputs: Any) -> dict[str, Array]:
    """Three colours of each pixel become sixteen numbers, of which the mean over the photo goes to four classes."""
    pixels = np.maximum(np.einsum("chw,oc->ohw", inputs["photo"], weights["colours"]) + _column(weights["shift"]), 0)
    return {"classes": pixels.mean(axis=(1, 2)) @ weights["head"] + weights["bias"]}


def _column(values: Array) -> Array:
    return values[:, None, None]


def _drawn(*shape: int) -> Array:
    return np.random.default_rng([7, *shape]).standard_normal(shape, np.float32)


WEIGHTS = {"colours": _drawn(16, 3), "shift": _drawn(16), "head": _drawn(16, 4), "bias": _drawn(4)}


def network_one_by_one(weights: Any, inputs: Any) -> Array:
    pixels = np.maximum(np.einsum("chw,oc->ohw", inputs["photo"], weights["colours"]) + _column(weights["shift"]), 0)
    rows = pixels.reshape(len(pixels), -1)
    means = np.add.accumulate(rows, axis=1, dtype=rows.dtype)[:, -1] / rows.dtype.type(rows.shape[1])
    return np.asarray(means @ weights["head"] + weights["bias"])


def _without_a_row(inputs: dict[str, Array]) -> dict[str, Array]:
    photo = inputs["photo"].copy()
    photo[:, -1] = 0
    return {"photo": photo}


def _in_float16(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array.astype(np.float16) for name, array in arrays.items()}


WRONG: dict[str, Callable[[dict[str, Array]], Array]] = {
    "float16": lambda inputs: network_one_by_one(_in_float16(WEIGHTS), _in_float16(inputs)),
    "a lost bias": lambda inputs: network_one_by_one(WEIGHTS | {"bias": 0 * WEIGHTS["bias"]}, inputs),
    "another weight": lambda inputs: network_one_by_one(WEIGHTS | {"head": WEIGHTS["head"] * 1.003}, inputs),
    "a dropped row": lambda inputs: network_one_by_one(WEIGHTS, _without_a_row(inputs)),
}
PHOTOS = {
    "plain": np.full((3, 96, 96), 2.437, np.float32),
    "of eight bits": ((of_photo(3 * 96 * 96) - 0.45) / 0.22).astype(np.float32).reshape(3, 96, 96),
}


@pytest.mark.parametrize("photo", PHOTOS)
def test_a_network_that_averages_a_photo_is_right_and_mistakes_are_not(photo: str) -> None:
    inputs = {"photo": PHOTOS[photo]}
    reference, tolerance = allowed_for(network, inputs, WEIGHTS)
    exact = reference["classes"]
    right = network_one_by_one(WEIGHTS, inputs)
    assert right.dtype == np.float32
    assert output_errors("classes", right, exact, tolerance).right
    for name, wrong in WRONG.items():
        assert not output_errors("classes", wrong(inputs).astype(np.float32), exact, tolerance).right, name


@pytest.mark.parametrize(
    ("values", "count", "equal"),
    [
        (np.full(1000, 3.0), 1000, 1000),
        (np.arange(1.0, 1001.0), 1000, 1),
        (np.repeat([1.0, 2.0], 500), 1000, 500),
        (np.concatenate([np.zeros(900), np.arange(1.0, 101.0)]), 100, 1),
        (np.zeros(5), 0, 1),
        (np.empty(0), 0, 1),
    ],
    ids=["equal", "different", "two values", "mostly zero", "zeros", "nothing"],
)
def test_equal_numbers_are_counted(values: Array, count: int, equal: int) -> None:
    assert (Addends.of(values).count, Addends.of(values).equal) == (count, equal)


def test_of_many_numbers_some_are_counted() -> None:
    levels = np.random.default_rng(1).integers(1, 257, 1_000_000).astype(np.float32)
    found = Addends.of(levels)
    assert found.count == 1_000_000
    assert found.equal == pytest.approx(1_000_000 / 256, rel=0.1)
    assert Addends.of(np.arange(1.0, 1_000_001.0)).equal < 4
