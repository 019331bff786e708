"""Twenty steps of every model that learns.

Right contestants are within what rounding explains, and each mistake is outside of it and named.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.mistakes import mistakes
from framework_python import python_with, skip_unless_available
from steps_of_training import BELOW_ROUNDING, MODELS, PACKAGES, exercise_of, state_of
from thorough import thorough_where

pytestmark = pytest.mark.timeout(1800)

CONTESTANTS = ("torch", "tensorflow:graph", "jax")
SEPARATE = ("paddle", "paddle:static")
QUICK = ("digits", "torch")


@functools.cache
def check_of(model: str) -> TrainingCheck:
    """One for all contestants of a model."""
    if package := PACKAGES.get(model):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    return TrainingCheck(exercise_of(model))


@pytest.mark.parametrize(
    ("model", "contestant"),
    [
        *thorough_where(lambda each: each != QUICK, [(model, each) for model in MODELS for each in CONTESTANTS]),
        *(pytest.param(model, each, marks=pytest.mark.heavy_environments) for model in MODELS for each in SEPARATE),
    ],
)
def test_twenty_steps_are_those_of_the_reference(model: str, contestant: str, tmp_path: Path) -> None:
    skip_unless_available(contestant)
    check = check_of(model)
    with python_with(contestant) as python:
        apart, why = check.judged(state_of(contestant, check.exercise, tmp_path, python))
    assert why == ""
    assert max(apart.values()) <= 1


@pytest.mark.parametrize("model", thorough_where(lambda each: each != "digits", MODELS))
def test_every_mistake_is_found_after_twenty_steps_and_named(model: str) -> None:
    check = check_of(model)
    for what, other in mistakes(check.exercise):
        if (model, what) in BELOW_ROUNDING:
            continue
        got = other.taken(np.float32)
        apart, why = check.judged(got)
        assert max(apart.values()) > 1, what
        if not all(np.isfinite(array).all() for array in got.values()):
            assert "not finite" in why
        else:
            assert why == what


@pytest.mark.thorough
def test_what_rounding_hides_is_what_the_documentation_says() -> None:
    """An entry that is found by now does not belong there."""
    for model, what in BELOW_ROUNDING:
        check = check_of(model)
        other = dict(mistakes(check.exercise))[what]
        assert max(check.judged(other.taken(np.float32))[0].values()) <= 1, what
