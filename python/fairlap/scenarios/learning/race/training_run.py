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
from fairlap.scenarios.learning.race.epochs_left import EpochsLeft
from fairlap.scenarios.learning.race.held_out_answers import HELD_OUT
from fairlap.scenarios.learning.race.kept_weights import KeptWeights
from fairlap.scenarios.learning.race.learning import Learner
from fairlap.scenarios.learning.race.scoring_pace import ScoringPaces


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
