"""A contestant sees the inputs of its sample alone, and an answer that comes after its ring is found in any place."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.scenarios.callables.untrusted.arms import FEWEST_ALONE, Arm
from fairlap.scenarios.callables.untrusted.draws import DrawnSlots, Draws
from fairlap.scenarios.callables.untrusted.exclusion import Excluded
from fairlap.scenarios.callables.untrusted.host_exchange import HostExchange
from fairlap.scenarios.callables.untrusted.layout import layout_of
from fairlap.scenarios.callables.untrusted.memory import PAGE_BYTES, SharedMemory

SLOTS, FIRST, COUNT = 8, 2, 6
ARGUMENT, ANSWER = np.zeros(40), (np.zeros(5, np.float32), np.zeros(30, np.int64), 1.0)


class Sample:
    """Of a contestant that this process plays: its inputs and its answers as it sees them."""

    def __init__(self) -> None:
        draws = Draws(lambda rng: rng.standard_normal(40), {}, seed=1)
        self.drawn = DrawnSlots(draws, layout_of(ARGUMENT, "it"), SLOTS, None)
        self.layout = layout_of(ANSWER, "it")
        self.answered = SharedMemory("answers", PAGE_BYTES + SLOTS * self.layout.slot_bytes, read_only_elsewhere=False)
        copied = np.empty(SLOTS * self.layout.slot_bytes // 8, np.uint64)
        self.exchange = HostExchange(self.answered, self.layout, self.drawn, copied)

    def answer(self, slot: int, leaves: tuple[int, ...] = (0, 1, 2)) -> None:
        views = self.layout.views(self.answered.bytes[PAGE_BYTES:], slot)
        for leaf in leaves:
            views[leaf][...] = slot + 1

    def visible(self) -> list[int]:
        seen = self.drawn.memory.bytes[PAGE_BYTES:][: SLOTS * 320].reshape(SLOTS, 320)
        return np.flatnonzero(seen.any(axis=1)).tolist()

    def close(self) -> None:
        self.drawn.memory.close()
        self.answered.close()


@pytest.fixture
def sample() -> Iterator[Sample]:
    made = Sample()
    made.drawn.fill(SLOTS)
    yield made
    made.close()


def test_inputs_are_seen_in_their_sample_alone(sample: Sample) -> None:
    assert sample.visible() == []
    for first, count in ((0, 1), (1, 1), (FIRST, COUNT), (0, 1)):
        sample.exchange.prepare(first, count)
        assert sample.visible() == list(range(first, first + count))


def test_new_inputs_are_not_seen_before_their_sample(sample: Sample) -> None:
    sample.exchange.prepare(FIRST, COUNT)
    before = sample.drawn.memory.bytes.copy()
    sample.drawn.fill(SLOTS)
    assert (sample.drawn.memory.bytes == before).all()
    sample.exchange.prepare(FIRST, COUNT)
    assert (sample.drawn.memory.bytes != before).any()


def test_answers_in_time_are_not_late(sample: Sample) -> None:
    for _ in range(200):  # places are drawn
        sample.exchange.prepare(FIRST, COUNT)
        for slot in range(FIRST, FIRST + COUNT):
            sample.answer(slot)
        sample.exchange.ended_ns(FIRST, COUNT)
        sample.exchange.require_in_time(FIRST, COUNT)


@pytest.mark.parametrize("late", range(FIRST, FIRST + COUNT))
@pytest.mark.parametrize("leaves", [(0,), (1,), (2,), (0, 1, 2)])
def test_any_part_that_comes_after_the_ring_is_late(sample: Sample, late: int, leaves: tuple[int, ...]) -> None:
    for _ in range(20):
        sample.exchange.prepare(FIRST, COUNT)
        for slot in range(FIRST, FIRST + COUNT):
            sample.answer(slot, tuple({0, 1, 2} - set(leaves)) if slot == late else (0, 1, 2))
        views = sample.layout.views(sample.answered.bytes[PAGE_BYTES:], late)
        for leaf in leaves:
            views[leaf][...] = 0  # as it was
        sample.exchange.ended_ns(FIRST, COUNT)
        sample.answer(late, leaves)
        with pytest.raises(Excluded) as excluded:
            sample.exchange.require_in_time(FIRST, COUNT)
        assert excluded.value.code == "E_DEFERRED_WORK"


def test_an_answer_that_never_comes_is_late(sample: Sample) -> None:
    for _ in range(20):
        sample.exchange.prepare(FIRST, COUNT)
        for slot in range(FIRST, FIRST + COUNT - 1):
            sample.answer(slot)
        sample.exchange.ended_ns(FIRST, COUNT)
        with pytest.raises(Excluded):
            sample.exchange.require_in_time(FIRST, COUNT)


def arms(alone_ns: Any) -> tuple[Arm, Arm]:
    process: Any = SimpleNamespace()
    floor, arm = Arm("the empty call", process), Arm("a", process)
    floor.alone_ns, floor.together_ns = np.full(len(alone_ns), 100e3).tolist(), [5e3] * 10
    arm.alone_ns, arm.together_ns = list(alone_ns), [25e3] * 10
    return floor, arm


def test_a_few_calls_alone_are_no_evidence() -> None:
    floor, arm = arms([900e3] * 9)
    assert arm.is_slow_alone(floor)
    arm.require_one_by_one(floor)


def test_calls_that_were_all_slow_alone_are_evidence() -> None:
    floor, arm = arms([900e3] * FEWEST_ALONE)
    with pytest.raises(Excluded) as excluded:
        arm.require_one_by_one(floor)
    assert excluded.value.code == "E_CALLS_TOGETHER"


def test_calls_that_a_busy_machine_disturbs_as_often_as_the_empty_one_are_no_evidence() -> None:
    rng = np.random.default_rng(5)
    for _ in range(1000):
        floor, arm = arms(100e3 + 1e6 * rng.exponential(size=FEWEST_ALONE))
        floor.alone_ns = (100e3 + 1e6 * rng.exponential(size=FEWEST_ALONE)).tolist()
        arm.require_one_by_one(floor)
