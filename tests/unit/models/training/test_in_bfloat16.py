"""Training in bfloat16: right contestants are within what rounding explains, mistakes are not, or are listed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights, rounded_to_bfloat16
from fairlap.models.registry import find, reference_at
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.exercise import Exercise, distances, trained
from fairlap.models.training.in_bfloat16 import (
    end_of,
    end_with_rounding,
    in_precision,
    kept_in_bfloat16,
    trained_in_precision,
)
from fairlap.models.training.reference import Batch, State
from fairlap.request.fields.training import AdamW, Sgd, Training
from fairlap.request.work import Precision

SGD = Training(Sgd(lr=0.01, momentum=0.9, decay=0.0005))
ADAM = Training(AdamW(lr=0.001))
IN_BFLOAT16: tuple[Precision, ...] = ("bf16", "autocast")


def exercise(precision: Precision, training: Training = SGD, model: str = "mlp") -> Exercise:
    found = find(model)
    forward = reference_at(found.package).forward
    first, second = (Batch(draw_inputs(found.spec, 4, seed), draw_labels(found.spec, 4, seed)) for seed in (1, 2))
    start = State(dict(draw_weights(found.spec, 1)))
    return in_precision(Exercise(found.spec, forward, training, start, [first, second, first]), precision)


@cache
def check_of(precision: Precision) -> TrainingCheck:
    """Return that of the usual exercise; it keeps where known mistakes end."""
    return TrainingCheck(exercise(precision))


def by(of: Exercise, **changes: float) -> Exercise:
    optimizer = msgspec.structs.replace(of.training.optimizer, **changes)
    return replace(of, training=Training(optimizer, of.training.schedule))


def test_in_float32_nothing_changes() -> None:
    asked, found = exercise("fp32"), trained(exercise("fp32"))
    again = trained_in_precision(asked)
    assert again.allowed == found.allowed
    assert all(np.array_equal(array, again.expected[name]) for name, array in found.expected.items())


@pytest.mark.slow_but("bf16-training0")
@pytest.mark.parametrize("training", [SGD, ADAM])
@pytest.mark.parametrize("precision", IN_BFLOAT16)
def test_other_roundings_are_right_and_far_from_the_limit(precision: Precision, training: Training) -> None:
    asked = exercise(precision, training)
    found = check_of(precision).found if training is SGD else trained_in_precision(asked)
    for seed in (100, 101):
        apart = distances(found, end_with_rounding(asked, seed))
        assert 0.01 < max(apart.values()) < 0.6


def test_what_is_kept_in_bfloat16_has_eight_bits_and_small_moves_are_lost() -> None:
    asked = exercise("bf16")
    end = end_of(asked)
    assert all(
        np.array_equal(array, rounded_to_bfloat16(array).reshape(array.shape))
        for name, array in end.items()
        if name != "loss"
    )
    start = asked.start.named()
    norm = "weight/norm.weight"  # near 1, where bfloat16 has steps of 1/128
    assert np.count_nonzero(end[norm] != start[norm]) < 0.2 * start[norm].size
    assert np.count_nonzero(exercise("fp32").taken()[norm] != exercise("fp32").start.named()[norm]) == start[norm].size


@pytest.mark.slow_but("bf16")
@pytest.mark.parametrize("precision", IN_BFLOAT16)
@pytest.mark.parametrize("times", [0.5, 2.0])
def test_another_learning_rate_is_found_and_named(precision: Precision, times: float) -> None:
    check = check_of(precision)
    apart, why = check.judged(end_with_rounding(by(check.exercise, lr=times * 0.01), 100))
    assert max(apart.values()) > 3
    assert f"learning rate is {times:g} times" in why


@pytest.mark.parametrize("precision", IN_BFLOAT16)
def test_other_batches_are_found(precision: Precision) -> None:
    check = check_of(precision)
    asked = check.exercise
    skipped = replace(asked, batches=[*asked.batches[1:], asked.batches[0]])
    assert max(check.judged(end_with_rounding(skipped, 100))[0].values()) > 3


@pytest.mark.parametrize("precision", IN_BFLOAT16)
def test_mistakes_that_rounding_hides_are_listed_and_no_others(precision: Precision) -> None:
    hidden = check_of(precision).unseen_mistakes()
    assert list(hidden) == ["it does not decay its weights"]
    assert hidden["it does not decay its weights"] < 1


def test_steps_too_small_for_bfloat16_are_listed_as_unseen() -> None:
    unseen = TrainingCheck(exercise("bf16", Training(Sgd(lr=1e-12)))).unseen_mistakes()
    assert "its learning rate is 2 times the one asked for" in unseen


def test_a_bias_whose_sum_was_lost_is_right_with_the_reason_and_a_lost_matrix_is_wrong() -> None:
    check = check_of("bf16")
    asked, start = check.exercise, check.exercise.start.named()
    without_bias = {**end_with_rounding(asked), "weight/first.bias": start["weight/first.bias"]}
    apart, why = check.judged(without_bias)
    assert max(apart.values()) <= 1
    assert "first.bias" in why
    without_matrix = {**end_with_rounding(asked), "weight/second.weight": start["weight/second.weight"]}
    assert max(check.judged(without_matrix)[0].values()) > 1


def test_a_state_that_was_read_begins_a_step_as_it_is() -> None:
    asked = exercise("bf16")
    state = kept_in_bfloat16(asked.start)
    assert all(np.array_equal(array, asked.start.weights[name]) for name, array in state.weights.items())
