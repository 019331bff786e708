"""A framework that trains with NumPy, and in its second epoch diverges or dies where its variant says so.

Others answer held-out items with the weights of before, or not at all.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, TrainingState
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import Batch, State, kept_by, state_named, steps_of
from fairlap.models.workload import Workload

AT_STEP = 30  # of epochs of 22
_MOST_BOUND_TO_MEASURE = 12  # batches; a quick machine takes as many steps while it is measured


class NumpyTrainer(Framework):
    name = "numpy-trainer"
    packages = ("numpy",)
    module = "numpy"
    modes = ("train",)
    variants = ("", "diverges", "killed", "skips", "silent")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        with phase("build"):
            trainer = Trainer(work, wanted.variant)
        return Contestant(
            bind=trainer.bind,
            done=None,
            outputs=lambda loss: {"loss": np.asarray(loss, np.float32)},
            weights=lambda: {name: np.array(array) for name, array in trainer.state.weights.items()},
            in_force={"threads": str(wanted.threads), "precision": work.precision},
            training=TrainingState(
                trainer.read, trainer.reset, trainer.restore, None if wanted.variant == "silent" else trainer.answering
            ),
        )

    def version(self) -> str:
        return str(np.__version__)


class Trainer:
    def __init__(self, work: Workload, variant: str) -> None:
        self._work, self._variant = work, variant
        self._forward = work.implementation_of_reference().forward
        self.reset()

    def reset(self) -> None:
        self.state = State({name: np.array(array) for name, array in self._work.weights.items()})
        self._bound = 0

    def restore(self, state: Arrays) -> None:
        self.state = state_named(state)

    def read(self) -> dict[str, Any]:
        assert self._work.training is not None
        found = self.state.named()
        for kind in kept_by(self._work.training):
            for weight in self._work.spec.weights:
                found.setdefault(kind + weight.name, np.zeros(weight.shape))
        return {name: np.array(array, np.float32) for name, array in found.items()}

    def bind(self, arrays: Arrays) -> Callable[[], float]:
        self._bound += 1
        inputs = {name: array for name, array in arrays.items() if name != LABELS}
        return partial(self._step, Batch(inputs, arrays[LABELS]))

    def answering(self, batches: Sequence[Arrays]) -> Callable[[], list[Arrays]]:
        kept: list[Arrays] = []

        def answer() -> list[Arrays]:
            if kept and self._variant == "skips":
                return kept
            kept[:] = [self._forward(self.state.weights, batch) for batch in batches]
            return list(kept)

        return answer

    def _step(self, batch: Batch) -> float:
        work, training = self._work, self._work.training
        assert training is not None
        strikes = self.state.step == AT_STEP and self._bound > _MOST_BOUND_TO_MEASURE
        if strikes and self._variant == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if strikes and self._variant == "diverges":
            self.state.weights = {name: array * np.nan for name, array in self.state.weights.items()}
        losses, self.state = steps_of(work.spec, self._forward, training, self.state, [batch], np.float32)
        return losses[0]
