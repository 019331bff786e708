"""A framework that trains with NumPy, and in its second epoch diverges or dies where its variant says so.

Others answer held-out items with the weights of before, or not at all.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings, TrainingState
from fairlap.models.arrays import Arrays
from fairlap.models.training.reference import Batch, steps_of
from fairlap.models.workload import Workload
from installed_package import install_frameworks
from numpy_framework import NumpyFramework, Trainer

if TYPE_CHECKING:
    import pytest

AT_STEP = 30  # of epochs of 22
_MOST_BOUND_TO_MEASURE = 12  # batches; a quick machine takes as many steps while it is measured


def install_numpy_trainer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_frameworks(folder, monkeypatch, {"numpy-trainer": "numpy_trainer:NumpyTrainer"})


class NumpyTrainer(NumpyFramework):
    name = "numpy-trainer"
    modes = ("train",)
    variants = ("", "diverges", "killed", "skips", "silent")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        with phase("build"):
            trainer = StruckTrainer(work, wanted.variant)
        return trainer.contestant(wanted)


class StruckTrainer(Trainer):
    def reset(self) -> None:
        super().reset()
        self._bound = 0

    def training(self) -> TrainingState:
        return replace(super().training(), answering=None if self._variant == "silent" else self.answering)

    def bind(self, arrays: Arrays) -> Callable[[], float]:
        self._bound += 1
        return super().bind(arrays)

    def answering(self, batches: Sequence[Arrays]) -> Callable[[], list[Arrays]]:
        kept: list[Arrays] = []

        def answer() -> list[Arrays]:
            if kept and self._variant == "skips":
                return kept
            kept[:] = [self._forward(self.state.weights, batch) for batch in batches]
            return list(kept)

        return answer

    def _step(self, batch: Batch) -> float:
        strikes = self.state.step == AT_STEP and self._bound > _MOST_BOUND_TO_MEASURE
        if strikes and self._variant == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if strikes and self._variant == "diverges":
            self.state.weights = {name: array * np.nan for name, array in self.state.weights.items()}
        spec = self._work.spec
        losses, self.state = steps_of(spec, self._forward, self._training, self.state, [batch], np.float32)
        return losses[0]
