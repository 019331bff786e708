"""The time by which each contestant was judged in each run of a model: what a history is made of."""

from __future__ import annotations

import msgspec

from fairlap import quantity_text
from fairlap.request.training import Training
from fairlap.request.work import Mode, StartWeights
from fairlap.store.database import Database
from fairlap.store.run_ids import time_in_ids

_NS_PER_S = 1e9
_KEY = (
    "mode", "precision", "ranked_precisions", "batch", "data", "train_on", "load", "conditions", "threads", "device",
    "ranks", "hosts", "target_score", "reported_by",
)  # fmt: skip
_ESTIMATES = (
    "latency_p50_ns", "pipeline_throughput_per_s", "time_to_score_s", "largest_rate_per_s", "loadgen_latency_ns",
    "loadgen_rate_per_s", "reported_ns",
)  # fmt: skip


TIME_OF_A_REQUEST = "time of a request at the largest rate"
TIME_OF_A_SAMPLE = "time of a sample by LoadGen"


def time_to_score_named(target: float, *, evaluation_counts: bool) -> str:
    """Times to other scores, or with evaluation in them, are other quantities."""
    return f"time to a score of {quantity_text.share(target, 6)}{', evaluation counted' if evaluation_counts else ''}"


class _PlannedWork(msgspec.Struct, frozen=True):
    model: str
    mode: Mode = "infer"
    training: Training | None = None
    start: StartWeights | None = None


class _Asked(msgspec.Struct, frozen=True):
    """What defines the figures of a run and is in its plan only, not in its rows."""

    works: tuple[_PlannedWork, ...] = ()
    count_evaluation: bool = False

    def trained(self, model: str, mode: str) -> tuple[str, list[str]]:
        """The optimizer with its schedule, and from which weights; the same of all works of a model and mode."""
        work = next((each for each in self.works if (each.model, each.mode) == (model, mode)), None)
        training, start = (None, None) if work is None else (work.training, work.start)
        return "" if training is None else f" {training.text}", [] if start is None else [f"from {start.text}"]


class RecordedFigure(msgspec.Struct, frozen=True):
    """One contestant on one work in one run."""

    run: str
    began_at: str
    contestant: str
    framework: str
    precision: str
    version: str
    work: str  # without the model
    conditions: str
    threads: int
    device: str
    quantity: str
    value_ns: float
    low_ns: float | None
    high_ns: float | None


def recorded_figures(db: Database, model: str, since: str) -> list[RecordedFigure]:
    """In the order of the runs. Only contestants that finished; what has no figure is left out."""
    bounds = [f"{name}{end}" for name in _ESTIMATES for end in ("", "_low", "_high")]
    names = ("run", "recorded_at", "contestant", "framework", "version", *_KEY, *bounds)
    listed = ", ".join(f'"{name}"' for name in names)
    found = db.execute(
        f"SELECT {listed} FROM rows WHERE workload = ? AND run >= ? AND outcome = 'finished' ORDER BY run, rowid",
        (model, time_in_ids(since) if since else ""),
    )
    asked = _asked(db, model, since)
    figures = []
    for run, began_at, contestant, framework, version, *rest in found:
        key, cells = rest[: len(_KEY)], rest[len(_KEY) :]
        mode, precision, together, batch, data, train_on, load, conditions, threads, device, *others = key
        *at, target, reported_by = others
        plan = asked.get(run, _Asked())
        judged = _judged(cells, batch, target, reported_by, evaluation_counts=plan.count_evaluation)
        if judged is None:
            continue
        quantity, value, low, high = judged
        precisions = ", ".join(msgspec.json.decode(together or "[]")) or precision
        training, start = plan.trained(model, mode)
        parts = [f"{mode}{training}", precisions, f"batch {batch}", *_scale(*at), *start]
        parts += [f"on {train_on}"] if train_on else []
        parts += [f"load {load}"] if load else []
        parts += [f"fed {data}"] if data else []
        figures.append(
            RecordedFigure(
                run, began_at, contestant, framework, precision, version or "", " · ".join(parts), conditions, threads,
                device, quantity, value, low, high,
            )
        )  # fmt: skip
    return figures


def _scale(ranks: int | None, hosts: str | None) -> list[str]:
    """Nothing of one process, whose threads are known besides; rows of before scales were raced have neither."""
    on = ", ".join(msgspec.json.decode(hosts or "[]"))
    text = quantity_text.count(ranks or 1, "rank")
    return [f"{text} on {on}" if on else text] if (ranks or 1) > 1 or on else []


def _judged(
    cells: list[float | None], batch: int, target: float | None, reported_by: str | None, *, evaluation_counts: bool
) -> tuple[str, float, float | None, float | None] | None:
    """The quantity that decides a race of this kind, as a time: the smaller, the faster."""
    latency, fed, to_score, largest_rate, loadgen_latency, loadgen_rate, reported = (
        cells[at : at + 3] for at in range(0, len(cells), 3)
    )
    if reported[0]:
        return (f"time reported by {reported_by}", reported[0], reported[1], reported[2])
    if largest_rate[0]:
        return (TIME_OF_A_REQUEST, *_time_of_rate(largest_rate, 1))
    if loadgen_latency[0]:
        return ("latency by LoadGen", loadgen_latency[0], loadgen_latency[1], loadgen_latency[2])
    if loadgen_rate[0]:
        return (TIME_OF_A_SAMPLE, *_time_of_rate(loadgen_rate, 1))
    if to_score[0]:
        value, low, high = (None if each is None else each * _NS_PER_S for each in to_score)
        named = time_to_score_named(target or 0.0, evaluation_counts=evaluation_counts)
        return None if value is None else (named, value, low, high)
    if fed[0]:
        return ("time of a fed batch", *_time_of_rate(fed, batch))
    if latency[0]:
        return ("median time of a call", latency[0], latency[1], latency[2])
    return None


def _time_of_rate(rate: list[float | None], items: int) -> tuple[float, float | None, float | None]:
    """The bounds of a rate change places."""
    value, low, high = (items / each * _NS_PER_S if each else None for each in rate)
    assert value is not None
    return value, high, low


def _asked(db: Database, model: str, since: str) -> dict[str, _Asked]:
    return {run: msgspec.json.decode(text, type=_Asked) for run, text in _of_runs(db, "plan", model, since)}


def machines_of_runs(db: Database, model: str, since: str) -> dict[str, dict[str, str]]:
    """The recorded facts of the machine, by run."""
    found = _of_runs(db, "machine", model, since)
    return {run: msgspec.json.decode(text, type=dict[str, str]) for run, text in found}


def _of_runs(db: Database, column: str, model: str, since: str) -> list[tuple[str, str]]:
    return db.execute(
        f"SELECT id, {column} FROM runs WHERE number IN (SELECT run FROM works WHERE model = ?) AND id >= ?",
        (model, time_in_ids(since) if since else ""),
    ).fetchall()


def stored_models(db: Database) -> list[str]:
    return [model for (model,) in db.execute("SELECT DISTINCT model FROM works ORDER BY model")]
