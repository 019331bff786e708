"""The messages of training to a score, and what a process showed of it.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from fairlap.meters.energy import EnergyOfBlock
from fairlap.scenarios.asking import Ask, Reply


class EpochTrained(Reply, frozen=True, tag="epoch_trained"):
    """Of the steps alone: binding batches and reading the state are not part of the time."""

    steps: int
    trained_ns: float
    energy: EnergyOfBlock | None = None  # present when it was asked for and a sensor could be read
    answered_ns: float | None = None  # present when there was something to answer; not part of ``trained_ns``
    answering_energy: EnergyOfBlock | None = None


class Epoch(Ask[EpochTrained], frozen=True, tag="epoch"):
    """Take a step on each of these batches. The first epoch begins with the weights that were given."""

    served_by: ClassVar[str] = "fairlap.scenarios.learning.training:train"
    has_own_length: ClassVar[bool] = True

    number: int  # from 0
    data: str  # a safetensors file with every item: the inputs by name, and "labels"
    order: str  # a safetensors file with "order": the items of all batches, one batch after the other
    path: str  # where the state after the last step goes
    part: int = 0  # of an epoch whose state is read in between, and whose later parts begin where the last one ended
    energy: Literal["read"] | None = None  # there are sensors: report their readings over the steps
    held_out: str = ""  # where answering counts: a safetensors file with the inputs to answer after the last step
    answers: str = ""  # where the answers go, by the outputs' names

    @property
    def text(self) -> str:
        """As in messages to people, which count from 1."""
        return f"epoch {self.number + 1}"


class Restored(Reply, frozen=True, tag="restored"):
    """The state was read back."""


class Restore(Ask[Restored], frozen=True, tag="restore"):
    """Go on from this state: the next epoch begins with it, whatever its number."""

    served_by: ClassVar[str] = "fairlap.scenarios.learning.training:restore"

    state: str  # a safetensors file, as an epoch left it
    path: str  # where the state goes as it is read back from the framework


class Evaluation(msgspec.Struct, frozen=True):
    """What a contestant had learnt after an epoch, by its weights in the float64 reference, on held-out items.

    Without a score and a loss where they were not computed: see ``LearningCurve.scored_every``.
    """

    steps: int  # since the start
    trained_s: float  # in these steps, and in answering held-out items where that counts
    score: float | None  # the share of right answers; of values R squared
    loss: float | None
    energy: tuple[EnergyOfBlock, ...] = ()  # of the parts of this epoch; none where there was no sensor
    answered_s: float = 0.0  # the part of ``trained_s`` in which the contestant answered held-out items

    @property
    def stepping_s(self) -> float:
        return self.trained_s - self.answered_s


class LearningCurve(msgspec.Struct, frozen=True):
    """What one process learnt, until it reached the score or had no epoch left."""

    target: float
    evaluations: tuple[Evaluation, ...] = ()  # after each epoch
    scored_every: int = 1  # epochs, and of those since the last score the first that passed is found by bisecting
    steps_are_calls: bool = True  # a step is what is timed alone before the epochs, as it is not of an agent

    @property
    def reached(self) -> Evaluation | None:
        return next((each for place, each in enumerate(self.evaluations) if self.passes(place)), None)

    def passes(self, place: int) -> bool:
        score = self.evaluations[place].score
        return score is not None and score >= self.target

    @property
    def scored(self) -> tuple[Evaluation, ...]:
        return tuple(each for each in self.evaluations if each.score is not None)

    @property
    def best_score(self) -> float:
        return max(self._scores, default=0.0)

    @property
    def last_score(self) -> float:
        """Return the last known one."""
        return self._scores[-1] if self._scores else 0.0

    @property
    def _scores(self) -> list[float]:
        return [each.score for each in self.evaluations if each.score is not None]

    @property
    def trained_s(self) -> float:
        return self.evaluations[-1].trained_s if self.evaluations else 0.0
