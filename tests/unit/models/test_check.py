"""Right answers pass, every way of being wrong is told, and a wrong gradient has the wrong slope."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.models.answer_check import output_errors
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights, rounded_to_bfloat16
from fairlap.models.gradient_check import gradient_disagreements, slopes
from fairlap.models.reference import loss_of
from fairlap.models.registry import find
from fairlap.models.spec import TOLERANCES
from fairlap.models.workload import Workload, hash_of

FP32 = TOLERANCES["fp32"]
REFERENCE = np.random.default_rng(1).standard_normal((4, 50))


def test_a_float32_answer_is_right_and_its_error_is_kept() -> None:
    errors = output_errors("logits", REFERENCE.astype(np.float32), REFERENCE, FP32)
    assert errors.right
    assert 0 < errors.relative_error < 1e-7
    assert errors.cosine == pytest.approx(1)


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (REFERENCE.T, r"its shape is \[50, 4\], not \[4, 50\]"),
        (REFERENCE + np.nan, "200 of 200 elements are not finite"),
        (np.where(REFERENCE.max() == REFERENCE, np.inf, REFERENCE), r"1 of 200 elements are not finite \(infinite\)"),
        (REFERENCE[:, ::-1], "its cosine with the reference"),
        (np.zeros_like(REFERENCE), "its cosine with the reference"),
        (REFERENCE * 1.01, "elements are off by more than allowed"),
        (REFERENCE + 0.01 * (np.arange(200).reshape(4, 50) == 77), "1 of 200 elements are off"),
    ],
)
def test_every_way_of_being_wrong_is_told(got: npt.NDArray[np.float64], words: str) -> None:
    errors = output_errors("logits", got, REFERENCE, FP32)
    assert not errors.right

    assert re.search(words, errors.why)


def test_an_answer_of_nothing_but_zeros_is_right_when_the_reference_is_zero() -> None:
    assert output_errors("x", np.zeros(3), np.zeros(3), FP32).right


def mlp(mode: str = "grad") -> Workload:
    found = find("mlp")
    spec = found.spec
    return Workload(
        spec,
        found.package,
        4,
        mode,  # type: ignore[arg-type]
        "fp32",
        draw_weights(spec, 0),
        draw_inputs(spec, 4, 0),
        draw_labels(spec, 4, 0),
    )


def finite_difference_gradient(work: Workload, name: str) -> npt.NDArray[np.float64]:
    """The gradient of one small weight, element by element."""
    from fairlap.models.reference import loss_at

    weights = {key: array.astype(np.float64) for key, array in work.weights.items()}
    inputs = {key: array.astype(np.float64) for key, array in work.inputs.items()}
    gradient = np.zeros(weights[name].shape)
    for at in np.ndindex(gradient.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = weights[name].copy()
            moved[at] += step
            ends.append(loss_at(work, {**weights, name: moved}, inputs))
        gradient[at] = (ends[0] - ends[1]) / 2e-6
    return gradient


def test_a_right_gradient_has_the_reference_s_slope_and_a_wrong_one_has_not() -> None:
    work = mlp()
    only = [weight for weight in work.spec.weights if weight.name == "third.bias"]

    small = replace(work, spec=replace(work.spec, weights=tuple(only)))
    right = {"third.bias": finite_difference_gradient(work, "third.bias")}
    expected = [slopes(small)]
    assert max(gradient_disagreements(small, right, expected)) < 1e-4
    swapped = {"third.bias": right["third.bias"][::-1]}
    doubled = {"third.bias": 2 * right["third.bias"]}
    for wrong in (swapped, doubled):
        assert max(gradient_disagreements(small, wrong, expected)) > 0.1


def test_losses_have_known_values() -> None:
    output = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    labels = np.array([0, 2], dtype=np.int32)
    assert loss_of("cross_entropy", output, labels) == pytest.approx(-(np.log(0.5) + np.log(0.8)) / 2)
    assert loss_of("cross_entropy", output + 1000, labels) == pytest.approx(-(np.log(0.5) + np.log(0.8)) / 2)
    assert loss_of("mean_square", np.array([[1.0, -3.0]]), None) == 5.0


def test_hashes_tell_names_types_shapes_and_bytes_apart() -> None:
    one = {"a": np.zeros(4, np.float32)}
    others: list[dict[str, npt.NDArray[Any]]] = [
        {"b": np.zeros(4, np.float32)},
        {"a": np.zeros(4, np.int32)},
        {"a": np.zeros((2, 2), np.float32)},
        {"a": -np.zeros(4, np.float32)},
        {},
    ]
    assert len({hash_of(each) for each in [one, *others]}) == 6
    assert hash_of({"a": one["a"], "b": one["a"]}) == hash_of({"b": one["a"], "a": one["a"]})
    assert hash_of({"a": np.zeros((4, 4), np.float32).T}) == hash_of({"a": np.zeros((4, 4), np.float32)})


def test_arrays_are_drawn_one_apart_from_the_other_and_the_same_each_time() -> None:
    spec = find("mlp").spec
    first, again, other = (draw_weights(spec, seed) for seed in (0, 0, 1))
    assert hash_of(first) == hash_of(again) != hash_of(other)
    assert abs(float(np.corrcoef(first["first.bias"], first["second.bias"])[0, 1])) < 0.3


@pytest.mark.parametrize(
    ("given", "rounded"),
    [(1.0, 1.0), (1.00390625, 1.0), (1.01171875, 1.015625), (-1.005, -1.0078125), (3.0e38, 3.0041e38), (0.0, 0.0)],
)
def test_rounding_to_bfloat16_goes_to_the_nearest_and_ties_to_even(given: float, rounded: float) -> None:
    assert rounded_to_bfloat16(np.array([given], np.float32))[0] == pytest.approx(rounded, rel=1e-4)
