"""A counter of energy that is read before and after a region, on a clock that a test moves.

It is that of an H100 with driver 580, by docs/gpu-proof, part 5: a reading takes 3 ms, and it steps every 100 ms.
"""

from __future__ import annotations

import ctypes

import pytest
from fairlap.meters.counter_at_ends import CounterAtEnds
from watched_machine import fake_nvml_path, fresh_fake_nvml

MS = 1_000_000
AT_REST_W, AT_WORK_W = 100.0, 600.0


class Board:
    """At rest until ``work``, and after it."""

    def __init__(self) -> None:
        self._fake = fresh_fake_nvml()
        integer = ctypes.c_int64
        self._fake.fake_nvml_now_ns.restype = integer
        self._fake.fake_nvml_power_constant.argtypes = [ctypes.c_int, ctypes.c_double]
        self._fake.fake_nvml_power_point.argtypes = [ctypes.c_int, integer, ctypes.c_double, ctypes.c_int]
        self._fake.fake_nvml_energy_counter.argtypes = [ctypes.c_int, ctypes.c_uint64, integer, ctypes.c_uint64]
        self._fake.fake_nvml_set_cost.argtypes = [ctypes.c_char_p, integer]
        self._fake.fake_nvml_advance.argtypes = [integer]
        self._fake.fake_nvml_power_constant(0, AT_REST_W * 1e3)
        self._fake.fake_nvml_set_cost(b"nvmlDeviceGetTotalEnergyConsumption", 3 * MS)
        self.steps_every(100)

    def steps_every(self, ms: int) -> None:
        self._fake.fake_nvml_energy_counter(0, 0, ms * MS, 0)

    def now_ns(self) -> int:
        return int(self._fake.fake_nvml_now_ns())

    def wait(self, ms: int) -> None:
        self._fake.fake_nvml_advance(ms * MS)

    def work(self, ms: int) -> tuple[int, int]:
        begin_ns = self.now_ns()
        self._fake.fake_nvml_power_point(0, begin_ns, AT_WORK_W * 1e3, 0)
        self.wait(ms)
        self._fake.fake_nvml_power_point(0, self.now_ns(), AT_REST_W * 1e3, 0)
        return begin_ns, self.now_ns()


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    board = Board()
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    return board


@pytest.mark.parametrize("ms", [130, 400, 455, 1003, 20_000])
def test_what_the_board_takes_until_its_next_step_is_not_the_works(board: Board, ms: int) -> None:
    counter = CounterAtEnds(0, board.now_ns)
    board.wait(37)
    counter.before()
    whole = board.work(ms)
    counter.after()
    found = counter.energy(*whole, *whole)
    true_j = AT_WORK_W * ms / 1e3
    assert found.joules == pytest.approx(true_j, abs=0.008 * AT_WORK_W)  # the times of steps are known to 3 ms
    assert found.low_j is not None
    assert found.high_j is not None
    assert found.low_j <= true_j <= found.high_j
    assert found.high_j - found.low_j < 0.12 * AT_WORK_W  # of a step and two readings


def test_a_part_has_its_share_within_bounds_that_hold_whatever_the_rest_took(board: Board) -> None:
    counter = CounterAtEnds(0, board.now_ns)
    counter.before()
    begin_ns, end_ns = board.work(600)
    counter.after()
    found = counter.energy(begin_ns + 200 * MS, end_ns, begin_ns, end_ns)
    assert found.joules == pytest.approx(AT_WORK_W * 0.4, rel=0.03)
    assert found.low_j is not None
    assert found.high_j is not None
    assert found.low_j <= AT_WORK_W * 0.4 <= found.high_j
    assert found.high_j - found.low_j > AT_WORK_W * 0.2


def test_a_region_shorter_than_a_step_has_bounds_alone(board: Board) -> None:
    counter = CounterAtEnds(0, board.now_ns)
    counter.before()
    whole = board.work(60)
    counter.after()
    found = counter.energy(*whole, *whole)
    assert found.joules is None
    assert "shorter" in found.unresolved_because
    assert found.low_j == 0.0
    assert found.high_j is not None
    assert found.high_j >= AT_WORK_W * 0.06


def test_a_counter_that_does_not_step_gives_nothing(board: Board) -> None:
    board.steps_every(3_600_000)
    counter = CounterAtEnds(0, board.now_ns)
    counter.before()
    whole = board.work(300)
    counter.after()
    found = counter.energy(*whole, *whole)
    assert (found.joules, found.low_j, found.high_j) == (None, None, None)


def test_without_nvml_the_reason_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBNVML", "/dev/null")
    counter = CounterAtEnds(0, lambda: 0)
    counter.before()
    counter.after()
    assert "/dev/null" in counter.energy(0, 10, 0, 10).unresolved_because
