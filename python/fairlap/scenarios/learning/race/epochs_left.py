"""How long the processes of a block that train to a score may still take."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.process_result import ProcessResult


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
