"""Races of the tests' own servers that stream, through the plan and the results that any race has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from fairlap.race.processes.recorded_turns import timing_of
from fairlap.race.progress import Silence
from fairlap.race.run import Run
from fairlap.race.stopping import Ending
from fairlap.request.names import Contestants
from fairlap.results.results import Results, results_of
from fairlap.results.row import Row
from fairlap.scenarios.streams.asked import streams_asked
from fairlap.scenarios.streams.race.planned_load import plan_of
from fairlap.scenarios.streams.race.stream_race import StreamRace
from fairlap.scenarios.streams.streams_found import Counts, StreamsFound

TOKENS = 8
OF_A_BUSY_MACHINE = {"W_BUSY_CLIENT", "W_LONG_TURNS"}
"""Warnings that no server can help."""


class Addressed(Protocol):
    """A server of the tests, by HTTP or by gRPC."""

    def at(self, options: str = "") -> str: ...


def file_of_prompts(folder: Path, count: int = 40) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join(f'{{"prompt": "number {place}"}}\n' for place in range(count)))
    return path


_MEASURED_FLOOR = StreamRace._client_floor


def without_client_floor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamRace, "_client_floor", lambda *_of_turn: None)


def with_client_floor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamRace, "_client_floor", _MEASURED_FLOOR)


def raced(prompts: Path, *servers: Addressed, timeout: str = "20s", **asked: Any) -> Results:
    return raced_by_name(prompts, *(server.at(f":timeout={timeout}") for server in servers), **asked)


def raced_by_name(prompts: Path, *names: str, blocks: int | None = 1, seed: int = 1, **asked: Any) -> Results:
    contestants = Contestants(",".join(names))
    how = {"rate": 200.0, "trial": 0.1, "tokens": TOKENS, **asked}
    plan = plan_of(streams_asked(prompts, contestants, **how), contestants, blocks=blocks, seed=seed)
    race = StreamRace(plan, Silence(), Ending(plan))
    race.run()
    return results_of(Run(plan, race.processes, {}, dict(race.shares()), ended_early=race.ended_early))


def row_of(found: Results, server: Addressed) -> Row:
    return next(row for row in found.rows if row.contestant.startswith(server.at()))


def shown_by(found: Results, server: Addressed) -> list[StreamsFound]:
    """In each block."""
    own = [each for each in found.run.processes if each.contestant.startswith(server.at())]
    return [each.streams for each in own if each.streams is not None]


def counts_of(found: Results, server: Addressed) -> Counts:
    return sum((each.figures.counts for each in shown_by(found, server) if each.figures), Counts())


def exact_quantile_ns(times_ns: Sequence[float], quantile: float) -> float:
    """Of a list of all times, as any process's is computed."""
    values = np.array(times_ns, np.float64)
    timing = timing_of(values, in_rounds=True, calls_per_sample=1, method="", resolution_ns=0.0, whose="")
    return {0.5: timing.p50_ns, 0.9: timing.p90_ns, 0.99: timing.p99_ns}[quantile]


def codes(row: Row) -> set[str]:
    return {each.code for each in row.warnings} | ({row.code} if row.code else set())
