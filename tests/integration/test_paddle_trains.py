"""Paddle, in a separate environment: its steps of training are those of the reference.

Mistakes that its users may make are found.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.exercise import distances
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult
from framework_python import python_with
from one_block import processes_of_one_block
from steps_of_training import exercise_of, state_of

pytestmark = [pytest.mark.heavy_environments, pytest.mark.sanitized, pytest.mark.timeout(1800)]

SPOILT = Path(__file__).parents[1] / "support" / "spoilt_paddle.py"
CONTESTANTS = ("paddle", "paddle:static")
PLAIN = Training(Sgd(lr=0.01))
SGD = Training(Sgd(lr=0.01, momentum=0.9, decay=0.0005))
ADAMW = Training(AdamW(lr=0.001, decay=0.1), Schedule("cosine", warmup=2, steps=100))
SCHEDULED = Training(Sgd(lr=0.01, momentum=0.9), Schedule("linear", warmup=2, steps=20))
KEPT = {PLAIN: set(), SGD: {"buffer"}, ADAMW: {"mean", "square"}}
WORKS = [("mlp", PLAIN), ("mlp", SGD), ("mlp", ADAMW), ("convnet", SGD), ("tabular", SGD), ("mnist", ADAMW)]

MISTAKES = {
    "double-rate": ("mlp", SGD, "its learning rate is 2 times the one asked for"),
    "nesterov": ("mlp", SGD, None),
    "kept-gradients": ("mlp", SGD, None),
    "no-momentum": ("mlp", SGD, "it trains without momentum"),
    "coupled-decay": ("mlp", ADAMW, "its weight decay is added to the gradient instead of being kept apart"),
    "no-schedule": ("mlp", SCHEDULED, "it does not follow the schedule of the learning rate"),
    "as-in-inference": ("mnist", SGD, "it normalises by the running averages, as in inference"),
}
"""With what it is called, or nothing where the reference does not make it too."""


@functools.cache
def race(model: str, training: Training) -> dict[str, ProcessResult]:
    return processes_of_one_block(",".join(CONTESTANTS), Work(model, 4, "train", training=training), threads=1)


@pytest.mark.parametrize(("model", "training"), WORKS)
@pytest.mark.parametrize("name", CONTESTANTS)
def test_it_trains_as_the_reference_does(name: str, model: str, training: Training) -> None:
    process = race(model, training)[name]
    assert process.outcome == "finished", process.message + process.details
    assert {error.when for error in process.errors} == {"before", "changed inputs", "after", "timed call"}
    assert {error.what.partition(" ")[0] for error in process.errors} == {"loss", "weight", *KEPT[training]}
    assert all(error.right for error in process.errors)
    assert process.in_force["gradients"] == "on"
    assert process.in_force["optimizer"].endswith(training.text)


@functools.cache
def check_of(model: str, training: Training) -> TrainingCheck:
    return TrainingCheck(replace(exercise_of(model), training=training))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_its_users_is_found_and_named_where_the_reference_knows_it(mistake: str, tmp_path: Path) -> None:
    model, training, name = MISTAKES[mistake]
    check = check_of(model, training)
    with python_with("paddle") as python:
        got = state_of("paddle", check.exercise, tmp_path, python, str(SPOILT), mistake)
    assert all(np.isfinite(array).all() for array in got.values())
    apart, why = check.judged(got)
    assert max(apart.values()) > 1
    assert name in (None, why)


def test_the_variance_that_paddles_own_layer_moves_is_farther_off_than_rounding(tmp_path: Path) -> None:
    """So it is not used, although training that is off by so little would not be disqualified."""
    check = check_of("mnist", SGD)
    with python_with("paddle") as python:
        got = state_of("paddle", check.exercise, tmp_path, python, str(SPOILT), "variance-of-the-batch")
    beyond = {name for name, distance in distances(check.found, got).items() if distance > 1}
    assert beyond
    assert all(name.endswith("running_var") for name in beyond)


@pytest.mark.parametrize(("model", "training"), [("mlp", SGD), ("mlp", ADAMW), ("mlp", SCHEDULED), ("mnist", SGD)])
def test_without_the_mistake_the_same_steps_are_right(model: str, training: Training, tmp_path: Path) -> None:
    check = check_of(model, training)
    with python_with("paddle") as python:
        apart, why = check.judged(state_of("paddle", check.exercise, tmp_path, python))
    assert (max(apart.values()) <= 1, why) == (True, "")
