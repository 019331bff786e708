"""A worker that trains with the reference's own code, on few items of digits, and the learner that asks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data.labelled.built_in import labelled_set
from fairlap.models.array_files import safetensors
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import Batch, State, steps_of
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.request.fields.data.training_data import TrainingData
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.scenarios.learning.race import learning as learning_module
from fairlap.scenarios.learning.race.learning import Learner
from fairlap.scenarios.learning.training_messages import Epoch, EpochTrained
from small_races import small_plan

TRAINING = Training(Sgd(lr=0.05, momentum=0.9))
BATCH = 32
STEPS = 6
WORK = Work("digits", BATCH, "train", training=TRAINING, train_on=TrainingData("digits"))
Batches = Callable[[Sequence[Batch]], Sequence[Batch]]


class Worker:
    """Trains with the reference's own code in float32."""

    pid = None

    def __init__(
        self,
        materials: Materials,
        training: Training = TRAINING,
        batches: Batches = lambda each: each,
        answer: Callable[[Any], Any] = lambda each: each,
    ) -> None:
        self._materials, self._training, self._batches, self._answer = materials, training, batches, answer
        self._state = State({})
        self.orders: list[bytes] = []

    def ask(self, epoch: Epoch, *, within_s: float) -> EpochTrained:
        if (epoch.number, epoch.part) == (0, 0):
            self._state = State({name: np.array(array) for name, array in self._materials.weights.items()})
        items = safetensors.read(Path(epoch.data))
        order = safetensors.read(Path(epoch.order))["order"]
        self.orders.append(order.tobytes())
        batches = self._batches(
            [Batch({"image": items["image"][rows]}, items[LABELS][rows]) for rows in order.reshape(-1, BATCH)]
        )
        forward = self._materials.workload("inputs").implementation_of_reference().forward
        _, self._state = steps_of(self._materials.spec, forward, self._training, self._state, batches, np.float32)
        safetensors.write(Path(epoch.path), {name: np.asarray(each, np.float32) for name, each in self.named().items()})
        if not epoch.held_out:
            return EpochTrained(len(batches), 1e6 * len(batches))
        answers = forward(self._state.weights, safetensors.read(Path(epoch.held_out)))
        safetensors.write(Path(epoch.answers), {name: self._answer(each) for name, each in answers.items()})
        return EpochTrained(len(batches), 1e6 * len(batches), answered_ns=5e6)

    def named(self) -> dict[str, Any]:
        return self._state.named()


def materials_of_few_items(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Materials:
    """With the first items of the data alone, so that the reference takes few steps."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(folder))
    whole, few = labelled_set("digits"), STEPS * BATCH
    part = replace(whole, inputs={"image": whole.inputs["image"][:few]}, labels=whole.labels[:few])
    monkeypatch.setattr(learning_module, "labelled", lambda *_: part)
    return materials_for(WORK, 0)


def planned(
    to_score: float = 0.5, most_epochs: int = 20, metrics: tuple[str, ...] = (), *, count_evaluation: bool = False
) -> Plan:
    return small_plan(
        "torch,jax",
        WORK,
        blocks=2,
        conditions="controlled",
        seed=3,
        to_score=to_score,
        most_epochs=most_epochs,
        metrics=metrics,
        count_evaluation=count_evaluation,
    )


def learner(materials: Materials, scratch: Path, block: int = 0, *, every: int = 1, **options: Any) -> Learner:
    """Make one that scores after every so many epochs, once this is decided."""
    plan = planned(**options)
    learning = Learner(plan, plan.blocks[block], materials, scratch)
    learning.pace.note(2, trained_s=1.0, scored_s=float(every), state_bytes=1)
    assert learning.pace.every(3) == every
    return learning
