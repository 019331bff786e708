"""A loss that differs from itself proves nothing, so no contestant may be compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.proof import InFloat64
from fairlap.models.training.gradients import GradientExercise, gradients_expected
from fairlap.models.training.reference import Batch, OwnSlopes, Slopes
from machine_marks import needs

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
needs("onnxscript")

from learning_sources import SUPPORT, opened_here  # noqa: E402

LOSSES = """
import itertools
import torch
count = itertools.count(1)
def scaled(outputs, labels):
    return (outputs * torch.rand(())).mean()
def far_from_zero(outputs, labels):
    return 1e12 + scaled(outputs, labels)
def counted(outputs, labels):
    return outputs.mean() * next(count)
def steady(outputs, labels):
    torch.manual_seed(0)
    return (outputs * torch.rand(())).mean()
"""


@pytest.fixture
def losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "losses_that_draw.py").write_text(LOSSES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(SUPPORT))


@pytest.mark.slow_but("counted")
@pytest.mark.parametrize("name", ["scaled", "far_from_zero", "counted"])
def test_a_loss_that_differs_from_itself_is_refused_when_the_model_is_opened(
    losses: None, tmp_path: Path, name: str
) -> None:
    with pytest.raises(SourceError) as refused:
        opened_here("own_nets:perceptron", f"losses_that_draw:{name}", tmp_path)
    assert refused.value.code == "E_SOURCE_RANDOM"


@pytest.mark.slow
def test_a_loss_that_draws_the_same_numbers_each_time_is_raced(losses: None, tmp_path: Path) -> None:
    found = opened_here("own_nets:perceptron", "losses_that_draw:steady", tmp_path)
    torch.manual_seed(0)
    share = float(torch.rand((), dtype=torch.float64))
    batch = found.batch()
    inputs = Batch(dict(InFloat64(batch.inputs)), batch.labels)
    got = found.slopes.slopes(dict(InFloat64(found.weights)), inputs, training=False)
    np.testing.assert_allclose(got.gradients["bias"], np.full(3, share / 3), rtol=1e-12)


class _Drawing(OwnSlopes):
    """Each call has another slope of w, as if a loss began to draw random numbers only after the model was opened."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def slopes(self, weights: Mapping[str, Any], batch: Batch, *, training: bool) -> Slopes:
        by = self._rng.random()
        return Slopes(float(by * weights["w"].sum()), {"w": np.full_like(weights["w"], by)}, {})


def test_what_a_gradient_may_be_off_by_does_not_grow_with_a_reference_that_differs_from_itself() -> None:
    exercise = GradientExercise(_Drawing(), {"w": np.ones(4, np.float32)}, Batch({}, None))
    with pytest.raises(FairlapError) as refused:
        gradients_expected(exercise)
    assert refused.value.code == "E_SOURCE_RANDOM"
