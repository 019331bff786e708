"""What frameworks in plain NumPy have in common; each of the tests' adds a mistake or misfortune for every variant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Contestant, Framework, Settings, TrainingState
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import Batch, State, kept_by, state_named
from fairlap.models.workload import Workload


class NumpyFramework(Framework):
    """It computes on one thread."""

    packages = ("numpy",)
    module = "numpy"
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # noqa: RUF012

    def version(self) -> str:
        return str(np.__version__)


def in_float32(arrays: Arrays) -> dict[str, np.ndarray]:
    return {name: np.array(array, np.float32) for name, array in arrays.items()}


def copied(arrays: Arrays) -> dict[str, np.ndarray]:
    return {name: np.array(array) for name, array in arrays.items()}


def in_force(work: Workload, wanted: Settings) -> dict[str, str]:
    return {"threads": str(wanted.threads), "precision": work.precision}


class Trainer:
    """Trains by the reference's code in float32, from weights that can be read, set back and restored."""

    def __init__(self, work: Workload, variant: str) -> None:
        assert work.training is not None
        self._work, self._variant, self._training = work, variant, work.training
        self._forward = work.implementation_of_reference().forward
        self.reset()

    def contestant(self, wanted: Settings, **more: Any) -> Contestant:
        return Contestant(
            bind=self.bind,
            done=None,
            outputs=lambda loss: {"loss": np.asarray(loss, np.float32)},
            weights=self.weights,
            **{"in_force": in_force(self._work, wanted), "training": self.training(), **more},
        )

    def training(self) -> TrainingState:
        return TrainingState(self.read, self.reset, self.restore)

    def weights(self) -> dict[str, Any]:
        return copied(self.state.weights)

    def reset(self) -> None:
        self.state = State(copied(self._work.weights))

    def restore(self, state: Arrays) -> None:
        self.state = state_named(state)

    def read(self) -> dict[str, Any]:
        assert self._work.training is not None
        found = self.state.named()
        trained = [weight for weight in self._work.spec.weights if weight.trained]
        for kind in kept_by(self._work.training):
            for weight in trained:
                found.setdefault(kind + weight.name, np.zeros(weight.shape))
        return in_float32(found)

    def bind(self, arrays: Arrays) -> Callable[[], float]:
        batch = batch_in(arrays)
        return lambda: self._step(batch)

    def _step(self, batch: Batch) -> float:
        raise NotImplementedError


def batch_in(arrays: Arrays) -> Batch:
    return Batch({name: array for name, array in arrays.items() if name != LABELS}, arrays.get(LABELS))
