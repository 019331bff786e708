"""What the referee and one contestant exchange through the memory of a device.

The contestant can write all of it at any time, with work that it enqueued even while it is stopped. So nothing is in it
outside of the contestant's time: the arguments are copied there after the clock started, and its answers away from it
before the clock stops; both are wiped then. Answers that rivals were given are thus nowhere to be found.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from fairlap import quantity_text
from fairlap.scenarios.callables.untrusted.exclusion import Excluded
from fairlap.scenarios.callables.untrusted.layout import Layout
from fairlap.scenarios.callables.untrusted.on_device.device_slots import DeviceOrders
from fairlap.scenarios.callables.untrusted.on_device.referee_device import RefereeDevice

_WORD_BYTES = 4


class PrivateMemory:
    """Memory of the referee alone: the arguments of a round, and the answers of the last contestant."""

    def __init__(self, device: RefereeDevice, arguments: Layout, answers: Layout, slots: int) -> None:
        self.device = device
        self.inputs = device.pages(slots * arguments.slot_bytes)
        self.taken = device.pages(slots * answers.slot_bytes)


class DeviceExchange:
    """Of one contestant. It must be closed after the contestant's process has ended."""

    def __init__(self, private: PrivateMemory, arguments: Layout, answers: Layout, slots: int) -> None:
        self._device, self._copies = private.device, private.device.copies
        self._private = private
        self._layout = answers
        self._argument_bytes, self._answer_bytes = arguments.slot_bytes, answers.slot_bytes
        self._inputs = self._device.pages(slots * self._argument_bytes)
        self._answered = self._device.pages(slots * self._answer_bytes)
        self._answers = np.zeros(slots * self._answer_bytes, np.uint8)
        self._rng = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def orders(self) -> DeviceOrders:
        return DeviceOrders(self._device.number, self._inputs.exported(), self._answered.exported())

    def prepare(self, first: int, count: int) -> None:
        """Fill where its answers will be with a word that no contestant can know."""
        self._poison = int(self._rng.integers(1, 2**32))
        self._fill_answers(self._poison, first, count)

    def reveal(self, first: int, count: int) -> None:
        """Give it the arguments of these slots. The clock runs."""
        at, nbytes = first * self._argument_bytes, count * self._argument_bytes
        self._copies.within(self._inputs.address + at, self._private.inputs.address + at, nbytes)

    def ended_ns(self, first: int, count: int) -> int:
        """Take its answers, and return when that was done."""
        at, nbytes = first * self._answer_bytes, count * self._answer_bytes
        self._copies.within(self._private.taken.address + at, self._answered.address + at, nbytes)
        return time.perf_counter_ns()

    def require_in_time(self, first: int, count: int) -> None:
        """Exclude it where answers were missing when they were taken, or changed since. It is stopped."""
        at, nbytes = first * self._answer_bytes, count * self._answer_bytes
        taken = self._device.downloaded(self._private.taken.address + at, nbytes)
        later = self._device.downloaded(self._answered.address + at, nbytes)
        self._answers[at : at + nbytes] = taken
        self._wipe(first, count)
        missing = self._missing(taken.reshape(count, -1))
        changed = (taken != later).reshape(count, -1).any(axis=1)
        if late := int((missing | changed).sum()):
            of_how_many = quantity_text.count(count, "answer")
            what = f"{late} of {of_how_many} came on the device after it rang back"
            raise Excluded(what, code="E_DEFERRED_WORK")
        self.require_quiet()

    def require_quiet(self) -> None:
        """Exclude it where work is left on the device, which was idle before it was continued."""
        if not self._device.is_idle():
            what = f"{self._device.name} was not idle after it rang back"
            raise Excluded(what, code="E_LEFT_RUNNING")

    def answers(self, slot: int) -> list[np.ndarray[Any, Any]]:
        """Copy the answers that were taken from a slot."""
        return [view.copy() for view in self._layout.views(self._answers, slot)]

    def close(self) -> None:
        """Free its memory."""
        del self._inputs, self._answered

    def _missing(self, taken: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Find the slots of which some array is as it was before, but for what could be so by chance."""
        poison = np.frombuffer(self._poison.to_bytes(_WORD_BYTES, "little"), np.uint8)
        missing = np.zeros(len(taken), bool)
        for leaf in self._layout.leaves:
            whole = leaf.nbytes // _WORD_BYTES * _WORD_BYTES
            words = taken[:, leaf.offset : leaf.offset + whole].reshape(len(taken), -1, _WORD_BYTES)
            missing |= (words == poison).all(axis=(1, 2)) & (whole > _WORD_BYTES)
        return missing

    def _wipe(self, first: int, count: int) -> None:
        self._fill_answers(0, first, count)
        at, nbytes = first * self._argument_bytes, count * self._argument_bytes
        self._copies.fill(self._inputs.address + at, 0, nbytes // _WORD_BYTES)

    def _fill_answers(self, word: int, first: int, count: int) -> None:
        at, nbytes = first * self._answer_bytes, count * self._answer_bytes
        self._copies.fill(self._answered.address + at, word, nbytes // _WORD_BYTES)
