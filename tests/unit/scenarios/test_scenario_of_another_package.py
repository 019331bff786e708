"""A package adds a scenario with steps of its own: the first call after a pause, which ranks contestants otherwise than
the median call does."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec
import pytest
from fairlap.race.plan import Measuring
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.render.markdown_file import encode
from fairlap.results.results import Results, results_of
from fairlap.scenarios import contract
from races_of_example import plan_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc")


@pytest.fixture
def asked(example: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EXAMPLE_PAUSE_S", "0.05")
    contract._scenarios.cache_clear()
    yield
    contract._scenarios.cache_clear()


@pytest.mark.usefixtures("asked")
def test_it_asks_ranks_and_is_shown_without_a_change_to_fairlap() -> None:
    results = raced("example,example:slow,example:cold")
    by_name = {row.contestant: row for row in results.rows}
    assert {row.judged_by for row in results.rows} == {"first call after 0.05 s of pause"}
    assert [row.contestant for row in results.rows] == ["example", "example:slow", "example:cold"]
    cold = by_name["example:cold"]
    assert cold.judged is not None
    assert cold.latency_p50_ns is not None
    assert cold.judged.value > 1.5 * cold.latency_p50_ns.value  # it sleeps 16 ms after a pause, and else 8 ms
    assert "first call after 0.05 s of pause" in encode(results.rows).decode()


def raced(contestants: str) -> Results:
    turns_of_many_calls = Measuring(seconds=0.8, rounds=4)
    plan = msgspec.structs.replace(plan_of(contestants, blocks=2), measuring=turns_of_many_calls)
    race = Race(plan)
    race.run()
    assert {process.outcome for process in race.processes} == {"finished"}
    return results_of(Run(plan, race.processes, {}, {}, "2026-01-01T00:00:00+00:00"), "r")
