"""Training until a score on held-out items is reached, under rules that are the same for all contestants.

All contestants of a block begin with the same weights and take the same batches in the same order. After every epoch
the weights are read, and the float64 reference answers the held-out items with them, outside of the time. So a score
is of the weights alone: what a framework would answer cannot improve it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.data.labelled.items import CODE as E_DATA
from fairlap.data.labelled.labelled_set import LabelledSet
from fairlap.errors import InvalidRequest
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models import safetensors
from fairlap.models.arrays import Arrays, Labels
from fairlap.models.reference import loss_of
from fairlap.models.spec import LABELS, Spec
from fairlap.models.task_metrics import Score
from fairlap.models.training_check import TrainingCheck
from fairlap.models.training_reference import WEIGHT, Batch
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.held_out_scores import held_out_scores, require_scorable
from fairlap.race.equal_work.learning_data import E_TO_SCORE as CODE
from fairlap.race.equal_work.learning_data import labelled
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.training_answers import first_epoch_errors
from fairlap.race.plan import Block, Plan
from fairlap.race.process_result import AnswerError
from fairlap.request.work import Work
from fairlap.scenarios.training_messages import Epoch, EpochTrained, Evaluation, LearningCurve

COMPARED_STEPS = 20
"""Of the first epoch: as many are compared with those of the reference, which takes longer than any contestant."""


def require_learnable(work: Work, spec: Spec) -> None:
    """Raise InvalidRequest for a work that cannot be trained to a score."""
    if work.mode != "train":
        raise InvalidRequest("--to-score is for --mode train", code=CODE)
    if work.train_on is None:
        raise InvalidRequest(f"the plan has no data from which {work.model} learns; draw a new plan", code=CODE)
    items = len(labelled(work, spec).labels)
    if work.batch > items:
        raise InvalidRequest(
            f"{work.model} learns from {quantity_text.count(items, 'item')} of {work.train_on.text}, fewer than a "
            f"batch of {work.batch:,}; choose a smaller batch or give more items",
            code=E_DATA,
        )


def require_plan(plan: Plan, works: Sequence[Materials]) -> None:
    """A plan that was saved may have been edited."""
    if plan.to_score is None:
        return
    if not 0 < plan.to_score < 1 or plan.most_epochs < 1:
        raise InvalidRequest(
            f"a score is between 0 and 1, in at least one epoch (got {plan.to_score:g} in {plan.most_epochs})",
            code=CODE,
        )
    for materials in works:
        require_learnable(materials.work, materials.spec)
        require_scorable(plan.metrics, materials.spec, labelled(materials.work, materials.spec))


def score_of_answers(outputs: npt.NDArray[Any], labels: Labels) -> float:
    """The share of right answers; of values, the share of their variance that is explained, R squared, which is below
    0 for answers that are worse than the mean. Both are 1 at best."""
    if labels.dtype.kind == "i":
        return float(np.mean(outputs.argmax(axis=-1) == labels))
    missed, spread = np.sum(np.square(outputs - labels)), np.sum(np.square(labels - labels.mean(axis=0)))
    return float(1 - missed / spread) if spread else float(missed == 0)


class Learner:
    """One process's epochs. The ``curve`` is kept also when the process is lost in one of them."""

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path) -> None:
        assert plan.to_score is not None
        self.curve = LearningCurve(plan.to_score)
        self._plan, self._block, self._materials = plan, block, materials
        self._scratch = scratch
        self._answers: Mapping[str, npt.NDArray[Any]] = {}  # to the held-out items, after the last epoch

    @property
    def goes_on(self) -> bool:
        return self.curve.reached is None and len(self.curve.evaluations) < self._plan.most_epochs

    def train_for_an_epoch(self, worker: WorkerProcess, within_s: float) -> list[AnswerError]:
        """How far the state after the first steps of the first epoch is from that of the reference, in the first
        block. Raises OtherWork for weights that are not finite."""
        found, number = labelled(self._materials.work, self._materials.spec), len(self.curve.evaluations)
        parts = [self._order(len(found.labels), number)]
        compares = self._is_compared and number == 0
        if compares:
            parts = np.split(parts[0], [COMPARED_STEPS * self._materials.work.batch])
        before = self.curve.evaluations[-1] if self.curve.evaluations else Evaluation(0, 0.0, 0.0, 0.0)
        steps, trained_s, errors = before.steps, before.trained_s, []
        after: Arrays = {}
        for part, order in enumerate(parts):
            if not order.size:
                continue
            trained, after = self._train(worker, found, (number, part), order, within_s)
            steps, trained_s = steps + trained.steps, trained_s + trained.trained_ns / 1e9
            if compares and part == 0:
                errors = first_epoch_errors(self._check(found), after)
        score, loss = self._evaluated(found, after, number + 1)
        evaluation = Evaluation(steps, trained_s, score, loss)
        self.curve = msgspec.structs.replace(self.curve, evaluations=(*self.curve.evaluations, evaluation))
        return errors

    def _train(
        self, worker: WorkerProcess, found: LabelledSet, place: tuple[int, int], order: np.ndarray, within_s: float
    ) -> tuple[EpochTrained, Arrays]:
        """The epoch, or the part of it, at this place, and the state after it."""
        items, state = self._scratch / "order.safetensors", self._scratch / "trained.safetensors"
        safetensors.write(items, {"order": order})
        state.unlink(missing_ok=True)
        request = Epoch(place[0], str(self._items(found)), str(items), str(state), place[1])
        trained = worker.train(request, within_s=within_s)
        asked = len(order) // self._materials.work.batch
        if trained.steps != asked:
            raise OtherWork(f"it took {trained.steps} steps on {asked} batches", "E_TRAINING")
        return trained, safetensors.read(state)

    def scores(self) -> dict[str, Score]:
        """The plan's metrics of the weights after the last epoch."""
        labels = labelled(self._materials.work, self._materials.spec).held_labels
        return held_out_scores(self._plan.metrics, self._materials.spec, self._answers, labels)

    @property
    def _is_compared(self) -> bool:
        """In the first block of a work: steps of the reference cost time, and every process takes them alike."""
        return self._block.number == min(each.number for each in self._plan.blocks if each.work == self._block.work)

    def _check(self, found: LabelledSet) -> TrainingCheck:
        """Of the first steps of this block; the same one for all of its contestants."""
        order = self._order(len(found.labels), 0).reshape(-1, self._materials.work.batch)[:COMPARED_STEPS]
        batches = [
            Batch({name: array[rows] for name, array in found.inputs.items()}, found.labels[rows]) for rows in order
        ]
        return self._materials.epoch_check(self._block.number, batches)

    def _order(self, items: int, number: int) -> np.ndarray:
        """Every item at most once: those that fill no batch are left out, others in each epoch."""
        batch = self._materials.work.batch
        drawn = np.random.default_rng([self._plan.seed, self._block.number, number]).permutation(items)
        return drawn[: items // batch * batch].astype(np.int64)

    def _items(self, found: LabelledSet) -> Path:
        file = self._materials.folder / f"items-{found.hash[:16]}.safetensors"
        if not safetensors.is_whole(file):
            safetensors.write(file, {**found.inputs, LABELS: found.labels})
        return file

    def _evaluated(self, found: LabelledSet, arrays: Arrays, epochs: int) -> tuple[float, float]:
        spec = self._materials.spec
        weights: Mapping[str, Any] = {
            name.removeprefix(WEIGHT): array.astype(np.float64)
            for name, array in arrays.items()
            if name.startswith(WEIGHT)
        }
        if missing := [each.name for each in spec.weights if each.name not in weights]:
            raise OtherWork(f"after epoch {epochs} it has no weights {', '.join(missing)}", "E_TRAINING")
        if not all(np.isfinite(array).all() for array in weights.values()):
            raise OtherWork(f"after epoch {epochs} its weights are not finite", "E_TRAINING")
        forward = self._materials.workload("inputs").implementation_of_reference().forward
        inputs = {
            name: array.astype(np.float64) if array.dtype.kind == "f" else array
            for name, array in found.held_inputs.items()
        }
        self._answers = forward(weights, inputs)
        outputs = self._answers[spec.outputs[0].name]
        return score_of_answers(outputs, found.held_labels), float(loss_of(spec.loss, outputs, found.held_labels))
