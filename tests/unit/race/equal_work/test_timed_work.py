"""Answers that are kept from before are told from those of a machine that is busy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fairlap.race.equal_work.timed_work import longer_on_new_inputs
from fairlap.scenarios.latency_messages import DrawnResult

MS = 1e6
USUAL_NS = 1 * MS


def new_calls(call_ms: Sequence[float], cpu_ms: Sequence[float | None]) -> list[DrawnResult]:
    return [
        DrawnResult(number, call * MS, cpu_ns=None if cpu is None else cpu * MS)
        for number, (call, cpu) in enumerate(zip(call_ms, cpu_ms, strict=True))
    ]


@pytest.mark.parametrize(
    ("call_ms", "cpu_ms", "longer"),
    [
        ((9, 9, 9), (9, 9, 9), True),
        ((9, 9, 9), (1, 1, 1), False),  # they waited for a core
        ((9, 9, 9), (9, 1, 9), False),
        ((9, 4, 9), (9, 9, 9), False),  # one was quick
        ((9, 9, 9), (None, None, None), True),
        ((9,), (9,), False),  # one call may be ten times as long by chance
        ((11,), (11,), True),
    ],
)
def test_every_call_on_new_inputs_must_take_longer_by_the_clock_and_by_cpu_time(
    call_ms: Sequence[float], cpu_ms: Sequence[float | None], longer: bool
) -> None:
    assert longer_on_new_inputs(new_calls(call_ms, cpu_ms), USUAL_NS, USUAL_NS) is longer


def test_a_worker_that_counts_no_cpu_time_is_judged_by_the_clock() -> None:
    assert longer_on_new_inputs(new_calls((9, 9, 9), (0, 0, 0)), USUAL_NS, 0.0)
