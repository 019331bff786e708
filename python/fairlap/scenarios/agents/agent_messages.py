"""The messages of agents that learn to act, and where the time of one process went.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from fairlap.scenarios.asking import Ask, Reply


class AgentTimes(msgspec.Struct, frozen=True):
    """Where the time of all iterations went. The rest of it is between these parts."""

    environment_s: float = 0.0
    inference_s: float = 0.0
    learning_s: float = 0.0

    def with_more(self, other: AgentTimes) -> AgentTimes:
        return AgentTimes(
            self.environment_s + other.environment_s,
            self.inference_s + other.inference_s,
            self.learning_s + other.learning_s,
        )


class AgentTrained(Reply, frozen=True, tag="agent_trained"):
    """Of the iterations alone: drawing numbers and reading weights are not part of the time."""

    steps: int  # of all environments
    trained_ns: float
    times: AgentTimes


class TrainAgent(Ask[AgentTrained], frozen=True, tag="train_agent"):
    """Act and learn for some iterations, from where those before ended, or from the weights that were given."""

    served_by: ClassVar[str] = "fairlap.scenarios.agents.training:train"
    has_own_length: ClassVar[bool] = True

    first: int  # iteration, from 0
    iterations: int
    seed: tuple[int, ...]  # of the numbers that are drawn for an iteration, with its own
    path: str  # where the weights after the last iteration go

    @property
    def text(self) -> str:
        return f"iteration {self.first + 1}"
