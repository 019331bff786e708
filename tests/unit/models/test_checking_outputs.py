"""Right and wrong outputs, and the words for every way of being wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.models.checks.answer_check import output_errors, quantized_errors
from fairlap.models.registry import find
from fairlap.models.spec import TOLERANCES, UNIT_ROUNDOFF
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

FP32 = TOLERANCES["fp32"]
REFERENCE = np.random.default_rng(0).normal(size=(4, 5))


def why(got: np.ndarray, reference: np.ndarray = REFERENCE) -> str:
    return output_errors("y", got, reference, FP32).why


def test_a_float32_of_the_reference_is_right_and_its_error_is_reported_all_the_same() -> None:
    error = output_errors("y", REFERENCE.astype(np.float32), REFERENCE, FP32)
    assert error.right
    assert 0 < error.relative_error < 1e-7
    assert 0 < error.worst_absolute < 2e-7
    assert error.cosine == pytest.approx(1)


def test_the_figures_are_what_they_are_called() -> None:
    error = output_errors("y", np.array([3.0, 4.5]), np.array([3.0, 4.0]), FP32)
    assert error.relative_error == pytest.approx(0.5 / 5)
    assert error.worst_absolute == 0.5
    assert error.cosine == pytest.approx((9 + 18) / (5 * math.hypot(3, 4.5)))


def test_one_element_off_is_wrong_though_the_cosine_is_high() -> None:
    got = REFERENCE.copy()
    got[1, 2] += 0.01
    assert why(got) == "1 of 20 elements are off by too much"


def test_near_in_one_of_the_two_ways_is_near_enough() -> None:
    reference = np.array([1e-6, 1000.0])
    assert output_errors("y", np.array([9e-5, 1000.9]), reference, FP32).right
    assert not output_errors("y", np.array([1e-6, 1001.1]), reference, FP32).right


def test_tiny_outputs_of_another_direction_are_wrong_though_every_element_is_near() -> None:
    assert why(np.array([1e-6, -1e-6]), np.array([1e-6, 1e-6])).partition(",")[0].endswith(" 0.0000")
    assert why(np.zeros(2), np.array([1e-6, 1e-6])).partition(",")[0].endswith(" 0.0000")


def test_a_reference_of_zeros_is_met_by_zeros_and_by_what_is_near_them() -> None:
    zeros = np.zeros((2, 2))
    assert not why(zeros, zeros)
    assert not why(zeros + 1e-6, zeros)
    assert why(zeros + 1, zeros) == "4 of 4 elements are off by too much"


def test_another_shape_is_wrong_even_with_the_same_elements() -> None:
    assert why(REFERENCE.T) == "its shape is [5, 4], not [4, 5]"
    assert why(REFERENCE.reshape(-1)) == "its shape is [20], not [4, 5]"


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
def test_not_a_number_and_infinities_are_counted_and_wrong(bad: float, word: str) -> None:
    got = REFERENCE.astype(np.float32)
    got[0, :2] = bad
    assert why(got) == f"2 of 20 elements are not finite ({word})"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nothing_is_right_beside_a_reference_that_is_not_finite(bad: float) -> None:
    assert "the reference itself is not finite" in why(REFERENCE, np.full((4, 5), bad))


def test_swapped_rows_and_a_sign_turned_round_are_wrong() -> None:
    assert "cosine" in why(REFERENCE[::-1])
    assert "cosine" in why(-REFERENCE)


@given(arrays(np.float64, (3, 3), elements=st.floats(-1e6, 1e6, allow_subnormal=False)), st.floats(-1e-3, 1e-3))
def test_a_relative_error_within_tolerance_is_always_right(reference: np.ndarray, relative: float) -> None:
    assert output_errors("y", reference * (1 + relative * 0.999), reference, FP32).right


@given(arrays(np.float64, (6,), elements=st.floats(-1e6, 1e6, allow_subnormal=False)), st.integers(0, 5))
def test_an_element_off_by_far_is_always_wrong(reference: np.ndarray, place: int) -> None:
    got = reference.copy()
    got[place] += 1e-3 + 2e-3 * abs(reference[place])
    assert not output_errors("y", got, reference, FP32).right


USUAL = np.full((4, 5), 10.0)  # what the answers to several inputs have in common


@pytest.mark.parametrize(
    ("share", "right"), [(0.0, True), (0.4, True), (0.6, False), (1.0, False)], ids=["exact", "near", "far", "usual"]
)
def test_a_quantized_answer_has_more_than_half_of_what_the_inputs_change(share: float, right: bool) -> None:
    reference = USUAL + REFERENCE
    got = reference - share * REFERENCE
    error = quantized_errors("y", got, reference, USUAL)
    assert error.right is right
    assert error.cosine > 0.99  # says nothing here: the answers to all inputs point the same way
    assert error.relative_error == pytest.approx(share * np.linalg.norm(REFERENCE) / np.linalg.norm(reference))


def test_a_quantized_answer_that_no_distance_can_be_computed_of_is_wrong() -> None:
    assert not quantized_errors("y", np.full((4, 5), np.nan), REFERENCE, USUAL).right
    assert not quantized_errors("y", REFERENCE.T, REFERENCE, USUAL).right


@pytest.mark.parametrize("model", ["mlp", "softmax", "resnet50", "gpt2_prefill"])
def test_precisions_that_round_an_eighth_as_much_have_an_eighth_of_the_tolerance(model: str) -> None:
    spec = find(model).spec
    wide = spec.tolerance("bf16")
    assert spec.tolerance("autocast") == wide
    assert UNIT_ROUNDOFF["bf16"] == 8 * UNIT_ROUNDOFF["fp16"] == 8 * UNIT_ROUNDOFF["tf32"]
    for precision in ("fp16", "tf32"):
        narrow = spec.tolerance(precision)
        assert (narrow.absolute, narrow.relative) == (wide.absolute / 8, wide.relative / 8)
        assert wide.cosine < narrow.cosine < 1
    with pytest.raises(KeyError):
        spec.tolerance("int8")
