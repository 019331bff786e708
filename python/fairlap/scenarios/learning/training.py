"""Training for whole epochs: steps on batches of real data, timed natively one after the other.

Where that counts, the contestant answers the held-out items after each epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.frameworks.contract import Contestant, TrainingState, Unsupported
from fairlap.meters.energy import EnergyOfBlock
from fairlap.models.array_files import safetensors
from fairlap.models.array_files.npy_map import release
from fairlap.models.arrays import Arrays, filled_batches, joined_items
from fairlap.scenarios.calls.latency import with_energy
from fairlap.scenarios.held import Held
from fairlap.scenarios.learning.training_messages import Epoch, EpochTrained, Restore, Restored

if TYPE_CHECKING:
    from fairlap.engine import Measurement


_WARM_UP_S = 0.1  # after a pause and 20 ms of steps JAX took 0.97 ms for each, after these 0.82 ms as without a pause
_MOST_HELD_TWICE_BYTES = 2**27  # steps on a larger state are so long that a cold one hardly matters
_MOST_MAPPED_BYTES = 2**27


def train(held: Held, request: Epoch) -> tuple[EpochTrained, tuple[()]]:
    held.require_unprofiled()
    return _epochs(held).train(request), ()


def restore(held: Held, request: Restore) -> tuple[Restored, tuple[()]]:
    return _epochs(held).restore(request), ()


def _epochs(held: Held) -> Epochs:
    return held.part(Epochs, lambda: Epochs(held.contestant, held.batch, held.settings.device))


class Epochs:
    """Of one contestant, whose items are read once."""

    def __init__(self, contestant: Contestant, batch: int, device: str) -> None:
        self._contestant, self._batch, self._device = contestant, batch, device
        self._items: dict[str, Arrays] = {}
        self._answer: Callable[[], Sequence[Arrays]] | None = None
        self._held_items = 0
        self._state_is_large = False

    def train(self, request: Epoch) -> EpochTrained:
        training = self._training
        if request.data not in self._items:
            self._items = {request.data: safetensors.read(Path(request.data))}
        order = safetensors.read(Path(request.order))["order"].reshape(-1, self._batch)
        # Some frameworks only point to the arrays of a batch, so these stay until the epoch is over.
        batches = [self._batch_of(self._items[request.data], rows) for rows in order]
        steps = [self._contestant.bind(batch) for batch in batches]
        answer = self._bound_answer(request.held_out) if request.held_out else None
        self._warm_up(steps, is_first=(request.number, request.part) == (0, 0))
        trained_ns, energy = self._timed(steps, request, self._contestant.done)
        answered_ns, answering_energy = None, None
        if answer is not None:
            answers: list[Sequence[Arrays]] = []
            # Its answers are NumPy arrays, so they are complete when it returns.
            answered_ns, answering_energy = self._timed([lambda: answers.append(answer())], request, None)
            safetensors.write(Path(request.answers), joined_items(answers[-1], self._held_items))
        safetensors.write(Path(request.path), training.read())
        return EpochTrained(len(steps), trained_ns, energy, answered_ns, answering_energy)

    def restore(self, request: Restore) -> Restored:
        training = self._training
        training.restore(safetensors.read(Path(request.state)))
        safetensors.write(Path(request.path), training.read())
        return Restored()

    def _batch_of(self, items: Arrays, rows: Any) -> dict[str, Any]:
        """Copy the items; what was read of a file for them is given back where the file is large."""
        found = {name: array[rows] for name, array in items.items()}
        if sum(array.nbytes for array in items.values()) > _MOST_MAPPED_BYTES:
            for array in items.values():
                release(array)
        return found

    @property
    def _training(self) -> TrainingState:
        assert self._contestant.training is not None
        return self._contestant.training

    def _warm_up(self, steps: Sequence[Callable[[], Any]], *, is_first: bool) -> None:
        """Warm up with steps whose effect on the state is undone.

        Before each epoch this process was frozen while others used the caches, and its threads fell asleep: the first
        step took up to seven times as long as the others, which a loop that trains without a pause never sees. The
        state is put back once before these steps too: what that compiles the first time would let the threads fall
        asleep again.
        """
        if is_first:
            self._training.reset()
        undo = self._undo(is_first=is_first)
        if undo is None:
            return
        undo()
        until_s = time.perf_counter() + _WARM_UP_S
        for step in cycle(steps):
            result = step()
            if self._contestant.done is not None:
                self._contestant.done(result)
            if time.perf_counter() >= until_s:
                break
        undo()

    def _undo(self, *, is_first: bool) -> Callable[[], Any] | None:
        """Return what puts the present state back; None where a copy of it would take too much memory."""
        training = self._training
        before = {} if self._state_is_large else training.read()
        self._state_is_large |= sum(array.nbytes for array in before.values()) > _MOST_HELD_TWICE_BYTES
        if training.hold is not None and not self._state_is_large:
            return training.hold()
        if is_first:
            return training.reset
        return None if self._state_is_large else partial(training.restore, before)

    def _bound_answer(self, file: str) -> Callable[[], Sequence[Arrays]]:
        """Bound once, and called once before it counts: the first call compiles."""
        training = self._training
        if self._answer is None:
            if training.answering is None:
                raise Unsupported("it cannot answer held-out items while it trains; leave --count-evaluation out")
            held = safetensors.read(Path(file))
            self._held_items = len(next(iter(held.values())))
            self._answer = training.answering(filled_batches(held, self._batch))
            self._answer()
        return self._answer

    def _timed(
        self, calls: Sequence[Callable[[], Any]], request: Epoch, done: Callable[[Any], Any] | None
    ) -> tuple[float, EnergyOfBlock | None]:
        """Time the calls one after the other, each once, in nanoseconds, with the energy if it was asked for."""
        from fairlap.engine import time_calls

        def take() -> Measurement:
            return time_calls(calls[0], in_turn=calls[1:], done=done, samples=len(calls), warmup=0, calls_per_sample=1)

        measured, energy = (take(), None) if request.energy is None else with_energy(take, self._device)
        if measured.interrupted:
            raise KeyboardInterrupt
        return float(measured.wall_ns.sum()), energy
