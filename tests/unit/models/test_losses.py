"""The losses, against values worked out by hand and against their own laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.models.reference import loss_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

SCORES = arrays(np.float64, (3, 4), elements=st.floats(-1e4, 1e4))
LABELS = np.array([0, 3, 2], np.int32)


def test_the_mean_square_is_over_all_elements() -> None:
    assert loss_of("mean_square", np.array([[1.0, -2.0], [3.0, 0.0]]), None) == pytest.approx(14 / 4)


def test_the_square_error_is_the_mean_square_of_what_is_missed() -> None:
    labels = np.array([[0.0, -2.0], [1.0, 0.0]], np.float32)
    assert loss_of("square_error", np.array([[1.0, -2.0], [3.0, 0.0]]), labels) == pytest.approx(5 / 4)


def test_cross_entropy_of_level_scores_is_the_logarithm_of_the_classes() -> None:
    assert loss_of("cross_entropy", np.zeros((3, 4)), LABELS) == pytest.approx(math.log(4))


def test_cross_entropy_is_the_mean_of_what_the_right_classes_lack() -> None:
    scores = np.log([[0.5, 0.2, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7], [0.3, 0.3, 0.2, 0.2]])
    assert loss_of("cross_entropy", scores, LABELS) == pytest.approx(-math.log(0.5 * 0.7 * 0.2) / 3)


def test_rows_may_have_several_axes() -> None:
    scores = np.random.default_rng(0).normal(size=(2, 3, 4))
    labels = np.array([[0, 3, 2], [1, 1, 0]], np.int32)
    flat = loss_of("cross_entropy", scores.reshape(6, 4), labels.reshape(6))
    assert loss_of("cross_entropy", scores, labels) == pytest.approx(flat)


@given(SCORES, st.floats(-1e4, 1e4))
def test_cross_entropy_is_never_negative_and_does_not_see_a_shift(scores: np.ndarray, shift: float) -> None:
    loss = loss_of("cross_entropy", scores, LABELS)
    assert 0 <= loss < math.inf
    assert loss_of("cross_entropy", scores + shift, LABELS) == pytest.approx(loss, rel=1e-6, abs=1e-6)


def test_cross_entropy_without_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="labels"):
        loss_of("cross_entropy", np.zeros((3, 4)), None)
