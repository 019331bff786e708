"""One process's training to a score: an epoch at a time, from a checkpoint where an interrupted race left one."""

from __future__ import annotations

import time
from pathlib import Path

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.training_answers import FIRST_EPOCH
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.request.names import ContestantName
from fairlap.scenarios.learning.race.checkpoints import Checkpoint, Checkpoints
from fairlap.scenarios.learning.race.held_out_answers import HELD_OUT
from fairlap.scenarios.learning.race.kept_weights import KeptWeights
from fairlap.scenarios.learning.race.learning import Learner
from fairlap.scenarios.learning.race.scoring_pace import ScoringPaces
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.process_result import ProcessResult


# How long the processes of a block that train to a score may still take.
class EpochsLeft:
    """The epochs left of the processes of a block that train to a score.

    When they reach it is not known, but in which epoch they end at the latest.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._block: int | None = None
        self._learning: dict[str, LearningCurve] = {}
        self._epochs, self._first_s = 0, 0.0

    def seconds(self, process: ProcessResult, now_s: float) -> float:
        """Estimate the longest time left, now that this process has trained for another epoch.

        Each epoch to come takes as long as those of this block took on average, with what was done between them.
        """
        learning = process.learning
        assert learning is not None
        if process.block != self._block:
            self._block, self._learning, self._epochs, self._first_s = process.block, {}, 0, now_s
        epoch_s = learning.trained_s / len(learning.evaluations)
        if self._epochs:
            epoch_s = (now_s - self._first_s) / self._epochs
        self._learning[process.contestant] = learning
        self._epochs += 1
        return epoch_s * sum(map(self._epochs_of, self._contestants()))

    def text(self, process: ProcessResult) -> str:
        """``epoch 3 of at most 60 · score 91 % of 95 %``; the score is the last known one."""
        assert process.learning is not None
        learning = process.learning
        score, target = (quantity_text.share(each, 3) for each in (learning.last_score, learning.target))
        return f"epoch {len(learning.evaluations)} of at most {self._plan.most_epochs} · score {score} of {target}"

    def _contestants(self) -> list[str]:
        block = next(each for each in self._plan.blocks if each.number == self._block)
        return [self._plan.contestants[place].text for place in block.order]

    def _epochs_of(self, contestant: str) -> int:
        learning = self._learning.get(contestant)
        if learning is None:
            return self._plan.most_epochs
        return 0 if learning.reached else self._plan.most_epochs - len(learning.evaluations)


class TrainingRun(AfterTurns):
    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        self._plan, self._limits = plan, plan.limits
        self._learner = Learner(plan, block, materials, scratch)

    def goes_on(self, bench: Bench) -> bool:
        """Decide on another epoch; the first one is always trained."""
        learner = self._learner
        return learner.goes_on and (not learner.curve.evaluations or bench.may_go_on())

    def begin(self, process: OneProcess) -> None:
        learner, result = self._learner, process.result
        learner.pace = process.bench.kept(ScoringPaces, ScoringPaces).of(result.work_id)
        found = process.bench.kept(Checkpoints, Checkpoints).find(result, lambda epochs: learner.origin(result, epochs))
        if found is None:
            return
        learner.go_on_from(found, process.worker, self._limits.answer_s)
        result.learning = found.curve
        result.errors += found.errors
        epochs = quantity_text.count(len(found.curve.evaluations), "epoch")
        text = f"{epochs} ran in another process, before the race was interrupted"
        result.warnings = [*result.warnings, Notice("W_CHECKPOINT", text)]

    def step(self, process: OneProcess) -> None:
        learner, result, bench = self._learner, process.result, process.bench
        energy = bool(bench.sensed.idle)
        errors = learner.train_for_an_epoch(process, self._limits.measure_s, energy=energy)
        result.learning = learner.curve
        result.errors += errors
        answers.require_right(errors, result.in_force)
        if learner.is_scored:
            origin = learner.origin(result, len(learner.curve.evaluations))
            of_epochs = [error for error in result.errors if error.when.startswith((FIRST_EPOCH, HELD_OUT))]
            checkpoint = Checkpoint(learner.curve, of_epochs, learner.state)
            bench.kept(Checkpoints, Checkpoints).write(result, origin, checkpoint)
        left = bench.kept(EpochsLeft, lambda: EpochsLeft(self._plan))
        bench.goes_on(result, left.text(result), left.seconds(result, time.monotonic()))

    def end(self, process: OneProcess) -> None:
        learner, result = self._learner, process.result
        learner.score_last()
        result.learning = learner.curve
        if learner.goes_on:
            text = f"the budget ended its training after {quantity_text.count(len(learner.curve.evaluations), 'epoch')}"
            result.warnings = [*result.warnings, Notice("W_BUDGET_IN_TRAINING", text)]
        process.bench.kept(KeptWeights, lambda: KeptWeights(self._plan)).offer(result, learner.curve, learner.state)
        result.scores = {**result.scores, **learner.scores()}
