"""What the referee takes from memory of a device, and leaves there. The contestant is this process here."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
import pytest
from cuda_on_fakes import on_fakes

if os.environ.get("FAIRLAP_TESTS_ON_FAKES"):  # before the driver is loaded
    os.environ["CUDA_FAKE_BOARD"] = tempfile.NamedTemporaryFile(delete=False).name  # noqa: SIM115

from fairlap.engine import _native
from fairlap.errors import FairlapError
from fairlap.scenarios.callables.untrusted.layout import layout_of
from fairlap.scenarios.callables.untrusted.on_device.device_exchange import DeviceExchange, PrivateMemory
from fairlap.scenarios.callables.untrusted.on_device.referee_device import RefereeDevice

Values = np.ndarray[Any, Any]
DRAWN = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
BLOCK_BYTES = 2 << 20


class Exchanged:
    """Three slots of four numbers; the right answer is the arguments."""

    def __init__(self) -> None:
        self.layout = layout_of(np.zeros(4, np.float32), "it")
        self.device = RefereeDevice("cuda:0")
        private = PrivateMemory(self.device, self.layout, self.layout, 3)
        self.exchange = DeviceExchange(private, self.layout, self.layout, 3)
        self.slots = np.zeros((3, self.layout.slot_bytes // 4), np.float32)
        self.slots[:, :4] = DRAWN
        self.device.copies.upload(private.inputs.address, self.slots.data)
        self.exchange.prepare(0, 3)

    def arguments(self) -> Values:
        return self._numbers(self.exchange._inputs.address)

    def answered(self) -> Values:
        return self._numbers(self.exchange._answered.address)

    def answer(self, values: Values) -> None:
        self.device.copies.upload(self.exchange._answered.address, values.data)

    def code(self) -> str:
        try:
            self.exchange.require_in_time(0, 3)
        except FairlapError as error:
            return error.code
        return ""

    def _numbers(self, address: int) -> Values:
        found: Values = self.device.downloaded(address, self.slots.nbytes).view(np.float32).reshape(3, -1)[:, :4]
        return found


@on_fakes
def test_arguments_are_there_when_the_clock_runs_and_not_before() -> None:
    made = Exchanged()
    assert not made.arguments().any()
    made.exchange.reveal(0, 3)
    assert np.array_equal(made.arguments(), DRAWN)


@on_fakes
def test_an_answer_that_is_there_in_time_is_taken() -> None:
    made = Exchanged()
    made.exchange.reveal(0, 3)
    made.answer(made.slots)
    made.exchange.ended_ns(0, 3)
    assert made.code() == ""
    assert np.array_equal(made.exchange.answers(2)[0], DRAWN[2])


@on_fakes
def test_an_answer_that_comes_after_the_clock_stopped_is_late() -> None:
    made = Exchanged()
    made.answer(made.slots[:1])
    made.exchange.ended_ns(0, 3)
    made.answer(made.slots)
    assert made.code() == "E_DEFERRED_WORK"


@on_fakes
def test_an_answer_that_changes_after_the_clock_stopped_is_late() -> None:
    made = Exchanged()
    made.answer(made.slots + 1)
    made.exchange.ended_ns(0, 3)
    made.answer(made.slots)
    assert made.code() == "E_DEFERRED_WORK"


@on_fakes
def test_an_answer_that_never_comes_is_missing() -> None:
    made = Exchanged()
    made.answer(made.slots[:2])
    made.exchange.ended_ns(0, 3)
    assert made.code() == "E_DEFERRED_WORK"


@on_fakes
def test_neither_arguments_nor_answers_are_left_for_a_rival() -> None:
    made = Exchanged()
    made.exchange.reveal(0, 3)
    made.answer(made.slots)
    made.exchange.ended_ns(0, 3)
    made.exchange.require_in_time(0, 3)
    assert not made.answered().any()
    assert not made.arguments().any()


@on_fakes
def test_memory_that_is_shared_fills_whole_blocks() -> None:
    """Whoever opens a smaller allocation gets its neighbours too: CUDA programming guide, section 4.15."""
    pages = _native.DevicePages(RefereeDevice("cuda:0").copies, 100)
    assert (pages.nbytes, pages.address % BLOCK_BYTES) == (BLOCK_BYTES, 0)


@on_fakes
def test_a_handle_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="handle"):
        _native.OpenedPages(_native.DeviceCopies(0), b"short")


@on_fakes
def test_memory_that_is_not_contiguous_is_not_copied() -> None:
    device = RefereeDevice("cuda:0")
    with pytest.raises(ValueError, match="contiguous"):
        device.copies.upload(device.pages(64).address, np.zeros((4, 4))[:, :2].data)
