"""One process's learning until its mean return reaches a score, which the float64 reference acts out.

All contestants of a block begin with the same weights, and get the same numbers for starts, actions and orders. After
every epoch, whose length is the algorithm's, the weights are read, and act in float64 from the same starts, outside of
the time. In the first block of a work, the weights after the first iteration are compared with those of the reference.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.bench_models.agents.rollouts import mean_return
from fairlap.engine.measurement import Notice
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.training_answers import AFTER_TRAINING
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.request.names import ContestantName
from fairlap.scenarios.agents.agent_messages import AgentTimes, TrainAgent
from fairlap.scenarios.agents.race.updates import LARGEST_CHANGE
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.scenarios.process_result import AnswerError

WHEN = "after the first iteration"

_DECIDED_BY_ROUNDING = 1e-5  # a number so near to the probability of an action may decide for another one


class AgentRun(AfterTurns):
    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        assert plan.to_score is not None
        self._plan, self._materials = plan, materials
        self._curve, self._times = LearningCurve(plan.to_score, steps_are_calls=False), AgentTimes()
        self._iterations = 0
        self._seed = (plan.seed, block.number)
        self._file = scratch / "agent-weights.safetensors"
        self._agent = materials.workload("inputs").implementation_of_reference()
        self._is_compared = block.number == min(each.number for each in plan.blocks if each.work == block.work)

    def goes_on(self, bench: Bench) -> bool:
        return self._is_open and (not self._curve.evaluations or bench.may_go_on())

    @property
    def _is_open(self) -> bool:
        return self._curve.reached is None and len(self._curve.evaluations) < self._plan.most_epochs

    def begin(self, process: OneProcess) -> None:
        super().begin(process)
        process.result.warnings = [*process.result.warnings, *self.notices_of_start()]

    def notices_of_start(self) -> list[Notice]:
        """Warn where there is nothing to learn: some drawn weights keep a pole up for a while."""
        target = self._curve.target
        if self._score(self._materials.weights) < target:
            return []
        had = f"in some blocks the agent scores {quantity_text.share(target, 3)} or more before it learns"
        return [Notice("W_SCORE_AT_START", f"{had}, so its time there is that of one epoch")]

    def step(self, process: OneProcess) -> None:
        """Learn for an epoch."""
        before = self._curve.evaluations[-1] if self._curve.evaluations else Evaluation(0, 0.0, None, None)
        steps, trained_s, result = before.steps, before.trained_s, process.result
        first_alone = self._is_compared and not self._iterations
        weights: Arrays = {}
        of_epoch = self._agent.algorithm.iterations_of_epoch
        for iterations in (1, of_epoch - 1) if first_alone else (of_epoch,):
            self._file.unlink(missing_ok=True)
            request = TrainAgent(self._iterations, iterations, self._seed, str(self._file))
            trained = process.ask(request, within_s=self._plan.limits.measure_s)
            weights = safetensors.read(self._file)
            if first_alone and not self._iterations:
                result.errors += (errors := self._errors(weights))
                answers.require_right(errors, result.in_force)
            self._iterations += iterations
            steps, trained_s = steps + trained.steps, trained_s + trained.trained_ns / 1e9
            self._times = self._times.with_more(trained.times)
        score = self._score(weights)
        evaluations = (*self._curve.evaluations, Evaluation(steps, trained_s, score, None))
        self._curve = msgspec.structs.replace(self._curve, evaluations=evaluations)
        result.learning, result.agent = self._curve, self._times

    def end(self, process: OneProcess) -> None:
        if self._is_open:
            epochs = quantity_text.count(len(self._curve.evaluations), "epoch")
            notice = Notice("W_BUDGET_IN_TRAINING", f"the budget ended its training after {epochs}")
            process.result.warnings = [*process.result.warnings, notice]

    def _score(self, weights: Arrays) -> float:
        if not all(np.isfinite(array).all() for array in weights.values()):
            raise OtherWork("its weights are not finite", "E_TRAINING")
        environment = self._agent.environment
        return float(mean_return(self._agent.algorithm, environment, weights) / environment.most_steps)

    def _errors(self, weights: Arrays) -> list[AnswerError]:
        """Compare how the first iteration changed the weights, unless rounding may have decided for other actions."""
        batch, given = self._materials.work.batch, self._materials.weights
        numbers = self._agent.algorithm.drawn(self._agent.environment, batch, self._seed, 0)
        expected, margin = self._agent.iteration(given, batch, numbers)
        if margin < _DECIDED_BY_ROUNDING:
            return []
        allowed = Tolerance(-1.0, float("inf"), 0.0, LARGEST_CHANGE)
        found = []
        for name, array in expected.items():
            if name not in weights or weights[name].shape != array.shape:
                raise OtherWork(f"its weights lack {name}", "E_TRAINING")
            before = given[name].astype(np.float64)
            change = weights[name].astype(np.float64) - before
            found.append(answers.answer_error(f"{name}{AFTER_TRAINING}", WHEN, change, array - before, allowed))
        return found
