"""One line for each contestant of each run: time, throughput, cost, energy and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.machine.hardware.cuda_devices import named_in
from fairlap.request.work import Conditions
from fairlap.request.work_title import told_apart
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import inverse, times
from fairlap.results.flat_row import columns
from fairlap.results.prices import Price
from fairlap.results.row import Row, judged_time_ns
from fairlap.results.scenario_side import results_sides
from fairlap.scenarios.contract import Better, Unit
from fairlap.store.stored_rows import RowsOfRun

_ITEMS = 1000
_NS_PER_S = 1e9
_NS_PER_HOUR = 3.6e12


OF_SCENARIOS = tuple(each for each in columns() if each.about.across is not None and each.field == each.name)


class _Timed(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    recorded_at: str
    machine: str  # the processor, or the GPU that it ran on
    machine_fingerprint: str
    environment_fingerprint: str
    work_id: str
    work: str
    data: str  # what the calls were fed; empty where nothing was
    conditions: Conditions
    contestant: str
    version: str | None
    device: str
    threads: int
    outcome: str
    message: str
    place: str | None  # among the contestants of its own run
    judged: Estimate | None  # what its run ranked it by
    judged_by: str
    judged_unit: Unit
    judged_better: Better
    time_ns: Estimate | None  # of a call, or of a fed batch
    latency_p99_ns: Estimate | None
    throughput_per_s: Estimate | None


if TYPE_CHECKING:

    class _Measured(_Timed, frozen=True, kw_only=True):
        def __getattr__(self, name: str) -> Any: ...  # a column of a scenario

else:
    _fields = [(each.field, Estimate | None) for each in OF_SCENARIOS]
    _Measured = msgspec.defstruct("_Measured", _fields, bases=(_Timed,), frozen=True, kw_only=True)


class Line(_Measured, frozen=True, kw_only=True):
    """A figure that is absent is None, never 0, and ``absent`` gives the reason."""

    peak_memory_bytes: Estimate | None
    price_per_hour: float | None
    currency: str | None
    judged_cost: Estimate | None  # of reaching a score, of 1,000 requests at a rate, else of 1,000 items
    cost_per_1000_items: Estimate | None
    items_per_unit_of_money: Estimate | None
    energy_per_item_j: Estimate | None
    mean_power_w: Estimate | None
    items_per_s_per_w: Estimate | None  # the same as items per joule
    carbon_per_1000_items_g: Estimate | None
    absent: dict[str, str]
    # Lines of the same work that are shown to be better in ``judged`` and its cost.
    dominated_by: list[str] = msgspec.field(default_factory=list)

    @property
    def done(self) -> tuple[str, str]:
        """The work and what its calls were fed: only lines in which both are the same are compared."""
        return self.work_id, self.data


FIGURES = tuple(name for name, hint in get_type_hints(Line).items() if hint == Estimate | None)


@dataclass(frozen=True)
class Entry:
    """A line with the row that it was made of, at the price of its run."""

    line: Line
    row: Row

    @property
    def name(self) -> str:
        return f"{self.line.contestant} in {self.line.run}"


def entries_of(
    runs: Sequence[RowsOfRun], prices: Mapping[str, Price], grams_per_joule: Mapping[str, float]
) -> list[Entry]:
    """Make the entries of these runs.

    Prices and the grid's carbon are by the name that the user gave a run. Of two kinds of conditions the rows are those
    that the run's verdict is about.
    """
    names = [run.run for run in runs]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise InvalidRequest(f"{twice} is given twice; give each run once, and files different names", code="E_ACROSS")
    named = [(work.id, run.plan.title_of(work)) for run in runs for work in run.plan.works]
    titles = told_apart(dict(reversed(named)))  # of one work, as the first run names it
    found = [
        _entry(run, row, titles, prices.get(run.name), grams_per_joule.get(run.name))
        for run in runs
        for row in run.rows
        if row.conditions == run.plan.headline
    ]
    order = list(dict.fromkeys(each.line.done for each in found))
    return sorted(found, key=lambda each: order.index(each.line.done))


def _entry(
    run: RowsOfRun, row: Row, titles: Mapping[str, str], price: Price | None, grams_per_joule: float | None
) -> Entry:
    row = row if price is None else at_price(row, price)
    figures = _figures(row, grams_per_joule)
    time, cost = figures["time_ns"][0], row.cost_per_1000_items
    per_hour = price.per_hour if price is not None else _price_of(row.batch, time, cost)
    no_cost = row.absent.get("cost_per_1000_items", "the run has no time to derive it from")
    known: dict[str, tuple[float | Estimate | str | None, str]] = {
        **figures,
        "version": (row.version, row.absent.get("version", "")),
        "place": (row.place, row.absent.get("place", "")),
        "currency": (row.currency, row.absent.get("currency", "")),
        "price_per_hour": (per_hour, no_cost),
        "judged_cost": (_judged_cost(row, per_hour), row.absent.get("judged", no_cost)),
    }
    line = Line(
        run=run.run,
        recorded_at=row.recorded_at,
        machine=machine_name(run, row),
        machine_fingerprint=row.machine,
        environment_fingerprint=row.environment,
        work_id=row.work_id,
        work=titles.get(row.work_id, f"{row.workload} · {row.mode} · {row.batch}"),
        data=row.data,
        conditions=row.conditions,
        contestant=row.contestant,
        device=row.device,
        threads=row.threads,
        judged_by=row.judged_by,
        judged_unit=row.judged_unit,
        judged_better=row.judged_better,
        outcome=row.outcome,
        message=row.message,
        absent={name: why for name, (value, why) in known.items() if value is None},
        **{name: value for name, (value, _) in known.items()},  # type: ignore[arg-type]
    )
    return Entry(line, row)


def at_price(row: Row, price: Price) -> Row:
    """Return the row as it would be had the race been given this price."""
    time, absent = _time_ns(row), dict(row.absent)
    of_scenarios = {name: cell for side in results_sides() for name, cell in side.costs(row, price).items()}
    for name in ("cost_per_1000_items", "currency", *of_scenarios):
        absent.pop(name, None)
    cost = None if time is None else times(time, price.of_1000_items_per_ns(row.batch))
    if cost is None:
        why = row.absent.get("latency_p50_ns", "there is no time")
        absent |= {"cost_per_1000_items": why, "currency": why}
    absent |= {name: cell.absent for name, cell in of_scenarios.items() if cell.value is None}
    currency = None if cost is None else price.currency
    values = {name: cell.value for name, cell in of_scenarios.items()}
    return msgspec.structs.replace(row, cost_per_1000_items=cost, currency=currency, absent=absent, **values)


def machine_name(run: RowsOfRun, row: Row) -> str:
    """Name what did the work: a GPU, else the processor."""
    if row.device != "cpu":
        return named_in(run.machine, row.device) or f"{row.device} of an unknown kind"
    return run.machine.get("cpu model", "an unknown processor")


def _figures(row: Row, grams_per_joule: float | None) -> dict[str, tuple[Estimate | None, str]]:
    time, cost, energy = _time_ns(row), row.cost_per_1000_items, row.energy_per_item_j
    no_cost, no_energy = row.absent.get("cost_per_1000_items", ""), row.absent.get("energy_per_item_j", "")
    carbon = None if energy is None or grams_per_joule is None else times(energy, _ITEMS * grams_per_joule)
    own = {
        name: (getattr(row, name), row.absent.get(name, ""))
        for name in (
            "judged",
            "latency_p99_ns",
            "throughput_per_s",
            "peak_memory_bytes",
            "mean_power_w",
            *(each.field for each in OF_SCENARIOS),
        )
    }
    return own | {
        "time_ns": (time, row.absent.get("latency_p50_ns", "")),
        "cost_per_1000_items": (cost, no_cost),
        "items_per_unit_of_money": (cost and inverse(cost, _ITEMS), no_cost or "the cost is 0"),
        "energy_per_item_j": (energy, no_energy),
        "items_per_s_per_w": (energy and inverse(energy), no_energy or "the energy is 0"),
        "carbon_per_1000_items_g": (
            carbon,
            "no carbon of the grid was given" if grams_per_joule is None else no_energy,
        ),
    }


def _time_ns(row: Row) -> Estimate | None:
    """Of a call; of fed ones, with all that feeding takes."""
    if row.pipeline_throughput_per_s is None:
        return row.latency_p50_ns
    return row.throughput_per_s and inverse(row.throughput_per_s, _NS_PER_S * row.batch)


def _judged_cost(row: Row, per_hour: float | None) -> Estimate | None:
    """Of the time that it is ranked by, on a machine that runs nothing else."""
    time = judged_time_ns(row)
    counts = {"s": 1.0, "1/s": _ITEMS, "ns": _ITEMS / row.batch}
    if time is None or per_hour is None or row.judged_unit not in counts:
        return None
    count = counts[row.judged_unit]
    return times(time, count * per_hour / _NS_PER_HOUR)


def _price_of(batch: int, time: Estimate | None, cost: Estimate | None) -> float | None:
    """Of an hour, as the race was given it: the row has only what follows from it."""
    if time is None or cost is None or time.value <= 0:
        return None
    return cost.value / (_ITEMS / batch * time.value) * _NS_PER_HOUR
