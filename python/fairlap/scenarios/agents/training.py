"""An agent in a worker: iterations of acting and learning, timed natively one after the other."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from fairlap.models.array_files import safetensors
from fairlap.models.workload import Workload
from fairlap.scenarios.agents.agent_messages import AgentTimes, AgentTrained, TrainAgent
from fairlap.scenarios.held import Held

_OTHER_NUMBERS = 10**6  # iterations that no process comes to: of the one that warms up


def train(held: Held, request: TrainAgent) -> tuple[AgentTrained, tuple[()]]:
    held.require_unprofiled()
    agent = held.part(Agent, lambda: Agent(held.read_again()[0], held.framework.implementation or held.framework.name))
    return agent.train(request), ()


class Agent:
    """Of one contestant. What its library compiles, it compiles once, before the first iteration counts."""

    def __init__(self, work: Workload, library: str) -> None:
        implementation = work.implementation(library)
        self._environment, self._batch = implementation.environment, work.batch
        self._algorithm = implementation.algorithm
        self._trainer: Any = implementation.trainer(work.weights, work.batch)

    def train(self, request: TrainAgent) -> AgentTrained:
        numbers = [self._drawn(request, request.first + place) for place in range(request.iterations)]
        if request.first == 0:
            self._trainer.begin(numbers[0])
        self._warm_up(request)
        trained_ns = self._timed([partial(self._trainer.iterate, each) for each in numbers])
        times = AgentTimes(*self._trainer.parts_s(numbers[-1], request.iterations))
        safetensors.write(Path(request.path), self._trainer.weights())
        return AgentTrained(request.iterations * self._algorithm.steps * self._batch, trained_ns, times)

    def _warm_up(self, request: TrainAgent) -> None:
        """Take an iteration and go back: the process was frozen while others used the caches, and JAX compiles."""
        back = self._trainer.hold()
        self._trainer.iterate(self._drawn(request, _OTHER_NUMBERS))
        back()
        self._trainer.forget_times()

    def _drawn(self, request: TrainAgent, iteration: int) -> dict[str, Any]:
        numbers: dict[str, Any] = self._algorithm.drawn(self._environment, self._batch, request.seed, iteration)
        return numbers

    def _timed(self, calls: list[Any]) -> float:
        from fairlap.engine import time_calls

        measured = time_calls(calls[0], in_turn=calls[1:], samples=len(calls), warmup=0, calls_per_sample=1)
        if measured.interrupted:
            raise KeyboardInterrupt
        return float(measured.wall_ns.sum())
