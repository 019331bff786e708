"""Training for whole epochs: steps on batches of real data, timed natively one after the other."""

from __future__ import annotations

from pathlib import Path

from fairlap.frameworks.contract import Contestant
from fairlap.models import safetensors
from fairlap.models.arrays import Arrays
from fairlap.scenarios.training_messages import Epoch, EpochTrained


class Epochs:
    """Of one contestant, whose items are read once."""

    def __init__(self, contestant: Contestant, batch: int) -> None:
        self._contestant, self._batch = contestant, batch
        self._items: dict[str, Arrays] = {}

    def train(self, request: Epoch) -> EpochTrained:
        from fairlap.engine import time_calls

        training = self._contestant.training
        assert training is not None
        if request.data not in self._items:
            self._items = {request.data: safetensors.read(Path(request.data))}
        order = safetensors.read(Path(request.order))["order"].reshape(-1, self._batch)
        if (request.number, request.part) == (0, 0):
            training.reset()
        # Some frameworks only point to the arrays of a batch, so these stay until the epoch is over.
        batches = [{name: array[rows] for name, array in self._items[request.data].items()} for rows in order]
        steps = [self._contestant.bind(batch) for batch in batches]
        measured = time_calls(
            steps[0],
            in_turn=steps[1:],
            done=self._contestant.done,
            samples=len(steps),
            warmup=0,
            calls_per_sample=1,
        )
        if measured.interrupted:
            raise KeyboardInterrupt
        safetensors.write(Path(request.path), training.read())
        return EpochTrained(len(steps), float(measured.wall_ns.sum()))
