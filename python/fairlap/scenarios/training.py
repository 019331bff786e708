"""Training for whole epochs: steps on batches of real data, timed natively one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.frameworks.contract import Contestant
from fairlap.meters.energy import EnergyOfBlock
from fairlap.models import safetensors
from fairlap.models.arrays import Arrays
from fairlap.scenarios.latency import with_energy
from fairlap.scenarios.training_messages import Epoch, EpochTrained, Restore, Restored

if TYPE_CHECKING:
    from fairlap.engine import Measurement


class Epochs:
    """Of one contestant, whose items are read once."""

    def __init__(self, contestant: Contestant, batch: int, device: str) -> None:
        self._contestant, self._batch, self._device = contestant, batch, device
        self._items: dict[str, Arrays] = {}

    def train(self, request: Epoch) -> EpochTrained:
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
        measured, energy = self._timed(steps) if request.energy is None else self._with_energy(steps)
        if measured.interrupted:
            raise KeyboardInterrupt
        safetensors.write(Path(request.path), training.read())
        return EpochTrained(len(steps), float(measured.wall_ns.sum()), energy)

    def restore(self, request: Restore) -> Restored:
        training = self._contestant.training
        assert training is not None
        training.restore(safetensors.read(Path(request.state)))
        safetensors.write(Path(request.path), training.read())
        return Restored()

    def _timed(self, steps: Sequence[Callable[[], Any]]) -> tuple[Measurement, None]:
        from fairlap.engine import time_calls

        done = self._contestant.done
        return time_calls(
            steps[0], in_turn=steps[1:], done=done, samples=len(steps), warmup=0, calls_per_sample=1
        ), None

    def _with_energy(self, steps: Sequence[Callable[[], Any]]) -> tuple[Measurement, EnergyOfBlock | None]:
        return with_energy(lambda: self._timed(steps)[0], self._device)
