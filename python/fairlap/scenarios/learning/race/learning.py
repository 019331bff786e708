"""Training until a score on held-out items is reached, under rules that are the same for all contestants.

All contestants of a block begin with the same weights and take the same batches in the same order. After every epoch
the weights are read, and the float64 reference answers the held-out items with them, outside of the time. So a score
is of the weights alone: what a framework would answer cannot improve it. Where evaluation counts, the contestant
answers the items too: that time is added, and its answers are compared with those of the reference.

Where scoring takes longer than an epoch, weights are kept for some epochs and only the last of them are scored. Once
these pass, bisecting finds the first that do, and training counts until then.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.data.labelled.items import CODE as E_DATA
from fairlap.errors import InvalidRequest
from fairlap.launch.worker_process import WorkerProcess
from fairlap.meters.energy import EnergyOfBlock
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, hash_of
from fairlap.models.spec import LABELS, Spec
from fairlap.models.task_metrics import Score
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.reference import Batch
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.training_answers import first_epoch_errors
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import OneProcess
from fairlap.request.work import Work
from fairlap.scenarios.learning.race.checkpoints import Checkpoint, Origin
from fairlap.scenarios.learning.race.held_out_answers import answered_errors, evaluated, held_out_answers
from fairlap.scenarios.learning.race.held_out_scores import held_out_scores, require_scorable
from fairlap.scenarios.learning.race.learning_data import E_TO_SCORE as CODE
from fairlap.scenarios.learning.race.learning_data import labelled
from fairlap.scenarios.learning.race.scoring_pace import ScoringPace
from fairlap.scenarios.learning.training_messages import Epoch, EpochTrained, Evaluation, LearningCurve, Restore
from fairlap.scenarios.process_result import AnswerError, ProcessResult

COMPARED_STEPS = 20
"""Of the first epoch: as many are compared with those of the reference, which takes longer than any contestant."""
_MOST_BOUND_BYTES = 2**28  # of items, which a contestant copies before it takes the steps on them


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
    """Check the score and the epochs again, since a plan that was saved may have been edited."""
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


class Learner:
    """One process's epochs.

    The ``curve`` is kept also when the process is lost in one of them, and ``state`` is the one after the last of them.
    ``pace`` is shared with the other contestants.
    """

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path) -> None:
        assert plan.to_score is not None
        self.curve = LearningCurve(plan.to_score)
        self.state: Arrays = {}
        self.pace = ScoringPace()
        self._unscored: list[Arrays] = []  # states after the last epochs; their mapped files have lost their names
        self._hashes_of_orders: list[str] = []
        self._plan, self._block, self._materials = plan, block, materials
        self._scratch = scratch
        self._answers = scratch / "held-out-answers.safetensors"
        self._found = labelled(materials.work, materials.spec)

    @property
    def goes_on(self) -> bool:
        return self.curve.reached is None and len(self.curve.evaluations) < self._plan.most_epochs

    @property
    def is_scored(self) -> bool:
        """Whether the state after the last epoch is."""
        return not self._unscored

    def train_for_an_epoch(self, process: OneProcess, within_s: float, *, energy: bool = False) -> list[AnswerError]:
        """Train for an epoch and, in the first block, compare the state after the first steps with the reference's.

        Returns the distances; where evaluation counts, also of its answers. Raises OtherWork for weights that are not
        finite.
        """
        number = len(self.curve.evaluations)
        order, compares = self._order(number), self._is_compared and number == 0
        first = COMPARED_STEPS * self._materials.work.batch if compares else 0
        parts = [order[:first], *self._in_pieces(order[first:])]
        before = self.curve.evaluations[-1] if self.curve.evaluations else Evaluation(0, 0.0, None, None)
        steps, trained_s, answered_s, errors = before.steps, before.trained_s, before.answered_s, []
        after: Arrays = {}
        read: list[EnergyOfBlock | None] = []
        orders = [some for some in parts if some.size]
        epoch_s = 0.0
        for part, order in enumerate(orders):
            evaluates = self._plan.count_evaluation and part == len(orders) - 1
            began_s = time.monotonic()
            trained, after = self._train(process, (number, part), order, within_s, energy=energy, evaluates=evaluates)
            epoch_s += time.monotonic() - began_s
            took_s = (trained.answered_ns or 0.0) / 1e9
            steps, answered_s = steps + trained.steps, answered_s + took_s
            trained_s += trained.trained_ns / 1e9 + took_s
            read += [trained.energy, trained.answering_energy]
            if compares and part == 0:
                errors = first_epoch_errors(self._check(), after)
        known = tuple(each for each in read if each is not None)
        evaluation = Evaluation(steps, trained_s, None, None, known, answered_s)
        every = 1 if self._plan.count_evaluation else self.pace.every(number + 1)
        evaluations = (*self.curve.evaluations, evaluation)
        self.curve = msgspec.structs.replace(self.curve, evaluations=evaluations, scored_every=every)
        self.state = after
        self._unscored.append(after)
        if len(self._unscored) < every and number + 1 < self._plan.most_epochs:
            return errors
        began_s = time.monotonic()
        answers = self._score(number, after)
        self.pace.note(number + 1, epoch_s, time.monotonic() - began_s, sum(each.nbytes for each in after.values()))
        if self._plan.count_evaluation:
            errors += answered_errors(self._materials, safetensors.read(self._answers), answers, number + 1)
        self._go_back_to_the_first_that_passed()
        return errors

    def score_last(self) -> None:
        """Score the state after the last epoch, where training ended before that was due."""
        if not self.is_scored:
            self._score(len(self.curve.evaluations) - 1, self.state)
            self._go_back_to_the_first_that_passed()

    def _go_back_to_the_first_that_passed(self) -> None:
        """Find it by bisecting the epochs since those before failed, and forget the epochs after it."""
        states, self._unscored = self._unscored, []
        if self.curve.reached is None:
            return
        before = len(self.curve.evaluations) - len(states)
        failed, passed = -1, len(states) - 1
        while passed - failed > 1:
            middle = (failed + passed) // 2
            self._score(before + middle, states[middle])
            if self.curve.passes(before + middle):
                passed = middle
            else:
                failed = middle
        evaluations = self.curve.evaluations[: before + passed + 1]
        self.curve, self.state = msgspec.structs.replace(self.curve, evaluations=evaluations), states[passed]

    def _score(self, number: int, state: Arrays) -> Mapping[str, np.ndarray]:
        """Note the score of the state after this epoch, and return the answers of the reference."""
        answers = held_out_answers(self._materials, self._found, state, number + 1)
        score, loss = evaluated(self._materials, self._found, state, answers, number + 1)
        evaluations = list(self.curve.evaluations)
        evaluations[number] = msgspec.structs.replace(evaluations[number], score=score, loss=loss)
        self.curve = msgspec.structs.replace(self.curve, evaluations=tuple(evaluations))
        return answers

    def _train(
        self,
        process: OneProcess,
        place: tuple[int, int],
        order: np.ndarray,
        within_s: float,
        *,
        energy: bool,
        evaluates: bool,
    ) -> tuple[EpochTrained, Arrays]:
        """Train the epoch, or the part of it, at this place, and return the state after it."""
        items, state = self._scratch / "order.safetensors", self._scratch / "trained.safetensors"
        safetensors.write(items, {"order": order})
        state.unlink(missing_ok=True)
        request = Epoch(place[0], str(self._items()), str(items), str(state), place[1], "read" if energy else None)
        if evaluates:
            self._answers.unlink(missing_ok=True)
            given = {"held_out": str(self._held_items()), "answers": str(self._answers)}
            request = msgspec.structs.replace(request, **given)
        trained = process.ask(request, within_s=within_s)
        if evaluates and trained.answered_ns is None:
            raise OtherWork(f"after epoch {place[0] + 1} it did not answer the held-out items", "E_OUTPUT")
        asked = len(order) // self._materials.work.batch
        if trained.steps != asked:
            raise OtherWork(f"it took {trained.steps} steps on {asked} batches", "E_TRAINING")
        return trained, safetensors.read(state)

    def scores(self) -> dict[str, Score]:
        """Compute the plan's metrics of the weights after the last epoch."""
        if not self._plan.metrics or not self.state:
            return {}
        answers = held_out_answers(self._materials, self._found, self.state, len(self.curve.evaluations))
        return held_out_scores(self._plan.metrics, self._materials.spec, answers, self._found.held_labels)

    def go_on_from(self, checkpoint: Checkpoint, worker: WorkerProcess, within_s: float) -> None:
        """Resume from a checkpoint; raise OtherWork for a state that the framework did not take unchanged."""
        self.curve, self.state = checkpoint.curve, checkpoint.state
        if not self.goes_on:
            return
        given, back = self._scratch / "restored.safetensors", self._scratch / "read-back.safetensors"
        safetensors.write(given, checkpoint.state)
        back.unlink(missing_ok=True)
        worker.ask(Restore(str(given), str(back)), within_s=within_s)
        if hash_of(safetensors.read(back)) != hash_of(checkpoint.state):
            raise OtherWork("the state read back from it is not that of its checkpoint", "E_TRAINING")

    def origin(self, process: ProcessResult, epochs: int) -> Origin:
        """Describe what a checkpoint after so many epochs is of."""
        known = self._hashes_of_orders
        for number in range(len(known), epochs):
            known.append(hashlib.sha256(self._order(number).tobytes()).hexdigest())
        return Origin(
            process.contestant,
            process.version,
            process.work_id,
            process.block,
            self._materials.weights_hash,
            self._found.hash,
            hashlib.sha256("".join(known[:epochs]).encode()).hexdigest(),
        )

    @property
    def _is_compared(self) -> bool:
        """In the first block of a work: steps of the reference cost time, and every process takes them alike."""
        return self._block.number == min(each.number for each in self._plan.blocks if each.work == self._block.work)

    def _check(self) -> TrainingCheck:
        """Of the first steps of this block; the same one for all of its contestants."""
        found, order = self._found, self._order(0).reshape(-1, self._materials.work.batch)[:COMPARED_STEPS]
        batches = [
            Batch({name: array[rows] for name, array in found.inputs.items()}, found.labels[rows]) for rows in order
        ]
        return self._materials.epoch_check(self._block.number, batches)

    def _order(self, number: int) -> np.ndarray:
        """Every item at most once: those that fill no batch are left out, others in each epoch."""
        batch, items = self._materials.work.batch, len(self._found.labels)
        drawn = np.random.default_rng([self._plan.seed, self._block.number, number]).permutation(items)
        return drawn[: items // batch * batch].astype(np.int64)

    def _in_pieces(self, order: np.ndarray) -> list[np.ndarray]:
        """Split it into whole batches, of which a contestant binds some hundred megabytes at a time."""
        of_item = sum(array[:1].nbytes for array in (*self._found.inputs.values(), self._found.labels))
        of_batch = self._materials.work.batch * of_item
        size = max(1, _MOST_BOUND_BYTES // max(1, of_batch)) * self._materials.work.batch
        return np.split(order, range(size, len(order), size))

    def _items(self) -> Path:
        return self._written("items", {**self._found.inputs, LABELS: self._found.labels})

    def _held_items(self) -> Path:
        return self._written("held", self._found.held_inputs)

    def _written(self, what: str, arrays: Arrays) -> Path:
        file = self._materials.folder / f"{what}-{self._found.hash[:16]}.safetensors"
        if not safetensors.is_whole(file):
            safetensors.write(file, arrays)
        return file
