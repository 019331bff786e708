"""A framework that trains with NumPy in float32, honestly or with one mistake.

``test_hostile.py`` asserts how each is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from fairlap.frameworks.contract import Contestant, Fed, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.training.in_bfloat16 import kept_in_bfloat16
from fairlap.models.training.reference import Batch, Mistake, State, steps_of
from fairlap.models.workload import Workload
from fairlap.request.fields.training import AdamW, Training
from numpy_framework import NumpyFramework, Trainer, batch_in

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


class HostileTraining(NumpyFramework):
    name = "hostile-training"
    modes = ("train",)
    precisions = ("fp32", "bf16", "autocast")
    variants = (
        *("", *TRAININGS, "accumulated", "shuffled-labels", "repeated-batch", "late-update", "frozen"),
        *("fed-ignored", "fed-late-labels", "fed-ignored-later"),  # wrong only when they are fed
    )

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        with phase("build"):
            trainer = HostileTrainer(work, wanted.variant)
        return trainer.contestant(wanted, fed=Fed(np.from_dlpack, trainer.fed_step))


class HostileTrainer(Trainer):
    def __init__(self, work: Workload, variant: str) -> None:
        super().__init__(work, variant)
        if variant in TRAININGS:
            self._training = TRAININGS[variant](self._training)
        self._first: Batch | None = None
        self._labels_before: Any = None
        self._fed_steps = 0

    def reset(self) -> None:
        super().reset()
        self.state = self._held(self.state)
        self._waiting: State | None = None

    def _held(self, state: State) -> State:
        return kept_in_bfloat16(state) if self._work.precision == "bf16" else state

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self._waiting = None

    def bind(self, arrays: Arrays) -> Callable[[], float]:
        if self._variant == "shuffled-labels" and LABELS in arrays:
            arrays = {**arrays, LABELS: arrays[LABELS][::-1].copy()}
        if self._variant == "repeated-batch":
            self._first = self._first or batch_in(arrays)
            first = self._first
            return lambda: self._step(first)
        return super().bind(arrays)

    def fed_step(self, arrays: Any) -> float:
        batch = batch_in(arrays)
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
