"""A framework that trains with NumPy in float32, honestly or with one mistake.

``test_hostile.py`` asserts how each is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from fairlap.frameworks.contract import Contestant, Fed, Framework, Phase, Settings, TrainingState
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.training.in_bfloat16 import kept_in_bfloat16
from fairlap.models.training.reference import Batch, Mistake, State, kept_by, state_named, steps_of
from fairlap.models.workload import Workload
from fairlap.request.training import AdamW, Training

Changed = Callable[[Training], Training]


def _by(**changes: Any) -> Changed:
    return lambda training: Training(msgspec.structs.replace(training.optimizer, **changes), training.schedule)


TRAININGS: dict[str, Changed] = {
    "doubled-rate": lambda training: _by(lr=2 * training.optimizer.lr)(training),
    "no-momentum": _by(momentum=0.0),
    "other-epsilon": _by(epsilon=1e-3),
    "no-schedule": lambda training: Training(training.optimizer),
    "coupled-decay": _by(decay=0.0),
}


class HostileTraining(Framework):
    name = "hostile-training"
    packages = ("numpy",)
    module = "numpy"
    modes = ("train",)
    precisions = ("fp32", "bf16", "autocast")
    variants = (
        *("", *TRAININGS, "accumulated", "shuffled-labels", "repeated-batch", "late-update", "frozen"),
        *("fed-ignored", "fed-late-labels", "fed-ignored-later"),  # wrong only when they are fed
    )

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
            training=TrainingState(trainer.read, trainer.reset, trainer.restore),
            fed=Fed(np.from_dlpack, trainer.fed_step),
        )

    def version(self) -> str:
        return str(np.__version__)


class Trainer:
    def __init__(self, work: Workload, variant: str) -> None:
        assert work.training is not None
        self._work, self._variant = work, variant
        changed = TRAININGS.get(variant)
        self._training = work.training if changed is None else changed(work.training)
        self._forward = work.implementation_of_reference().forward
        self._first: Batch | None = None
        self._labels_before: Any = None
        self._fed_steps = 0
        self.reset()

    def reset(self) -> None:
        self.state = self._held(State({name: np.array(array) for name, array in self._work.weights.items()}))
        self._waiting: State | None = None

    def _held(self, state: State) -> State:
        return kept_in_bfloat16(state) if self._work.precision == "bf16" else state

    def read(self) -> dict[str, Any]:
        found = self.state.named()
        for kind in kept_by(self._work.training) if self._work.training else ():
            for weight in self._work.spec.weights:
                if weight.trained:
                    found.setdefault(kind + weight.name, np.zeros(weight.shape))
        return {name: np.array(array, np.float32) for name, array in found.items()}

    def restore(self, state: Arrays) -> None:
        self.state, self._waiting = state_named(state), None

    def bind(self, arrays: Arrays) -> Callable[[], float]:
        inputs = {name: array for name, array in arrays.items() if name != LABELS}
        labels = arrays.get(LABELS)
        if self._variant == "shuffled-labels" and labels is not None:
            labels = labels[::-1].copy()
        batch = Batch(inputs, labels)
        if self._variant == "repeated-batch":
            self._first = self._first or batch
            batch = self._first
        return lambda: self._step(batch)

    def fed_step(self, arrays: Any) -> float:
        batch = Batch({name: array for name, array in arrays.items() if name != LABELS}, arrays[LABELS])
        self._fed_steps += 1
        if self._variant == "fed-ignored" or (self._variant == "fed-ignored-later" and self._fed_steps > 20):
            batch = Batch(self._work.inputs, self._work.labels)
        if self._variant == "fed-late-labels":
            labels, self._labels_before = self._labels_before, arrays[LABELS].copy()
            batch = batch if labels is None else Batch(batch.inputs, labels)
        return self._step(batch)

    def _step(self, batch: Batch) -> float:
        if self._waiting is not None:
            self.state, self._waiting = self._waiting, None
        optimizer = self._training.optimizer
        mistake = Mistake()
        if self._variant == "accumulated":
            mistake = Mistake(gradient_times=2.0)
        elif self._variant == "coupled-decay" and self._work.training is not None:
            assert isinstance(optimizer, AdamW)
            mistake = Mistake(decay_in_gradient=self._work.training.optimizer.decay)
        spec = self._work.spec
        losses, after = steps_of(spec, self._forward, self._training, self.state, [batch], np.float32, mistake)
        after = self._held(after)
        if self._variant == "late-update":  # the update is left for the next call
            self._waiting = after
        elif self._variant != "frozen":
            self.state = after
        return losses[0]
