"""Stores with a history: daily runs of three contestants, with known changes. Only rows are stored, no processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from fairlap.race.run import Run
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.store.opening import writing
from fairlap.store.runs.run_ids import id_of
from fairlap.store.store import open_store
from fairlap.store.tables import insert_run, keep_rows
from msgspec.structs import replace
from runs_for_rows import MACHINE, a_run

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = "2.12.0", "2.13.0"
ALL = ("torch", "jax", "onnxruntime")
Day = tuple[Run, list[Row]]


def steady(_: int) -> float:
    return 1.0


@cache
def pattern(contestants: tuple[str, ...]) -> Day:
    run = a_run(listed=",".join(contestants))
    return run, list(results_of(run, "pattern").rows)


def daily_run(
    day: int,
    *,
    torch: Callable[[int], float] = steady,
    machine: Callable[[int], float] = steady,
    upgraded_on: int = 1000,
    contestants: tuple[str, ...] = ALL,
    facts: dict[str, str] = MACHINE,
) -> Day:
    """``torch`` and ``machine`` are how many times as long calls take on a day."""
    rng = random.Random(day)
    run, rows = pattern(contestants)
    began_at = (FIRST + timedelta(days=day)).isoformat()
    common = machine(day) * rng.lognormvariate(0, 0.01)
    found = []
    for row in rows:
        assert row.latency_p50_ns is not None
        own = torch(day) if row.contestant.startswith("torch") else 1.0
        ns = row.latency_p50_ns.value * own * common * rng.lognormvariate(0, 0.002)
        version = NEW if row.framework == "torch" and day >= upgraded_on else OLD
        latency = Estimate(ns, 0.995 * ns, 1.005 * ns)
        row = replace(row, recorded_at=began_at, version=version, latency_p50_ns=latency, judged=latency)
        found.append(row)
    return Run(run.plan, [], dict(facts), {}, began_at), found


def under_load(day: Day) -> Day:
    """Turn the run into a race of load: the time of a call is that of a request at the largest rate."""
    run, rows = day
    found = []
    for row in rows:
        time = row.latency_p50_ns
        assert time is not None
        assert time.low is not None
        assert time.high is not None
        rate = Estimate(1e9 / time.value, 1e9 / time.high, 1e9 / time.low)
        absent = {name: why for name, why in row.absent.items() if name != "largest_rate_per_s"}
        row = replace(row, load="p99 within 20 ms", largest_rate_per_s=rate, absent=absent)
        found.append(replace(row, judged=rate, judged_by="largest rate", judged_unit="1/s", judged_better="higher"))
    return run, found


def stored(path: Path, days: Iterable[Day]) -> list[str]:
    """Store the runs, and return their ids."""
    ids = []
    with open_store(path) as store, writing(store._db):
        for run, rows in days:
            run_id = id_of(run.began_at)
            insert_run(store._db, run_id, "finished", run)
            keep_rows(store._db, [replace(row, run=run_id) for row in rows])
            ids.append(run_id)
    return ids
