"""Clocks are compared by exchanges alone; the truth is within the uncertainty, whatever the network does."""

from __future__ import annotations

import random

import pytest
from fairlap.scenarios.streams.several_clients.clock_offset import ClockOffset, Exchange, clock_offset, compared

OFFSET_NS = -3_600_000_000_000  # the other machine was started an hour later


class TwoMachines:
    """A clock here, another one elsewhere, and ways between them that take what they are given."""

    def __init__(self, there_ns: float, back_ns: float, drift: float = 0.0, jitter: float = 0.0, seed: int = 1) -> None:
        self._ways_ns, self._drift, self._jitter = (there_ns, back_ns), drift, jitter
        self._random = random.Random(seed)
        self._true_ns = 1e12
        self.here_ns = 0

    def now_ns(self) -> int:
        self._true_ns += 20
        return round(self._true_ns)

    @property
    def offset_ns(self) -> float:
        return OFFSET_NS + self._drift * (self._true_ns - 1e12)

    def ask(self) -> tuple[int, int]:
        self._pass(self._ways_ns[0])
        came_ns = self._true_ns + self.offset_ns
        self._pass(700)
        left_ns = self._true_ns + self.offset_ns
        self._pass(self._ways_ns[1])
        return round(came_ns), round(left_ns)

    def _pass(self, least_ns: float) -> None:
        self._true_ns += least_ns + (self._random.expovariate(1 / self._jitter) if self._jitter else 0.0)

    def sleep(self, time_ns: float) -> None:
        self._true_ns += time_ns

    def compared(self, exchanges: int = 20) -> ClockOffset:
        return compared(self.ask, self.now_ns, exchanges)


def test_ways_that_take_as_long_show_the_offset_exactly() -> None:
    found = TwoMachines(50_000, 50_000).compared()
    assert found.offset_ns == pytest.approx(OFFSET_NS, abs=100)
    assert found.uncertainty_ns == pytest.approx(50_000, abs=100)


@pytest.mark.parametrize("ways", [(1_000, 400_000), (400_000, 1_000), (0, 90_000)])
@pytest.mark.parametrize("seed", range(20))
def test_ways_of_unequal_length_are_within_the_uncertainty(ways: tuple[float, float], seed: int) -> None:
    machines = TwoMachines(*ways, jitter=200_000, seed=seed)
    found = machines.compared()
    assert abs(found.offset_ns - OFFSET_NS) <= found.uncertainty_ns + 1
    assert found.uncertainty_ns == pytest.approx(sum(ways) / 2, rel=1.0, abs=200_000)  # jitter mostly drops out


def test_exchanges_together_bound_it_more_closely_than_the_best_one_alone() -> None:
    """One was fast on the way there, another one on the way back."""
    fast_there = Exchange(0, 1_000 + OFFSET_NS, 2_000 + OFFSET_NS, 90_000)
    fast_back = Exchange(100_000, 188_000 + OFFSET_NS, 189_000 + OFFSET_NS, 190_000)
    both = clock_offset([fast_there, fast_back])
    assert both.uncertainty_ns == 1_000
    assert both.offset_ns == OFFSET_NS
    assert min(clock_offset([each]).uncertainty_ns for each in (fast_there, fast_back)) > 40_000


@pytest.mark.parametrize("drift", [5e-5, -5e-5])  # as far as crystals of PCs are off
def test_a_clock_that_goes_faster_is_within_the_uncertainty_from_before_a_load_to_after_it(drift: float) -> None:
    machines = TwoMachines(40_000, 90_000, drift=drift, jitter=30_000)
    before = machines.compared()
    truths_ns = []
    for _ in range(60):
        machines.sleep(1e9)
        truths_ns.append(machines.offset_ns)
    whole = before.including(machines.compared())
    assert all(abs(truth_ns - whole.offset_ns) <= whole.uncertainty_ns for truth_ns in truths_ns)
    assert abs(truths_ns[-1] - before.offset_ns) > before.uncertainty_ns  # one comparison alone would not do
    assert whole.uncertainty_ns == pytest.approx(60e9 * 5e-5 / 2, rel=0.2)


def test_times_go_from_one_clock_to_the_other_and_back() -> None:
    clock = ClockOffset(OFFSET_NS, 10.0)
    assert clock.here_ns(clock.there_ns(5e9)) == 5e9
    assert clock.there_ns(5e9) == 5e9 + OFFSET_NS


def test_bounds_that_have_crossed_are_both_within_the_uncertainty() -> None:
    """The other clock gained 300 ns between two exchanges that took no time."""
    found = clock_offset([Exchange(0, 0, 0, 0), Exchange(1_000, 1_300, 1_300, 1_000)])
    assert (found.offset_ns, found.uncertainty_ns) == (150.0, 150.0)
