"""Which figures of a part its page shows: those that decide something. Every figure stays in the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .record import Json

Rows = list[Json]
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def selected(tables: dict[str, Rows]) -> dict[str, Rows]:
    """Return the tables of a page, by their titles; one without a row is left out."""
    shown = {name: _SELECTIONS[name](rows) for name, rows in tables.items() if name in _SELECTIONS}
    return {_TITLES.get(name, name): rows for name, rows in shown.items() if rows}


def _columns(*names: str) -> Callable[[Rows], Rows]:
    return partial(_with_columns, names=names)


def _with_columns(rows: Rows, names: tuple[str, ...]) -> Rows:
    return [{name: row.get(name) for name in names} for row in rows]


def _not_passed(rows: Rows) -> Rows:
    """Leave out skipped tests too: the part's notes and the file have them."""
    unwanted = [row for row in rows if row["outcome"] not in ("passed", "skipped")]
    return _with_columns(unwanted, ("file", "test", "outcome", "note"))


def _errors_by_method(rows: Rows) -> Rows:
    by_method: dict[str, Rows] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    return [
        {
            "method": method,
            "floor_ns": lengths[0]["floor_ns"],
            "largest_error_over_floor_ns": max((row["error_over_floor_ns"] or 0 for row in lengths), key=abs),
            "host_ns_per_short_call": lengths[0]["host_ns_per_sample"],
            "invalid": f"{sum(row['invalid'] for row in lengths)} of {sum(row['samples'] for row in lengths)}",
        }
        for method, lengths in by_method.items()
    ]


def _pivoted(rows: Rows, by: tuple[str, ...], across: str, figure: str) -> Rows:
    """Return one row for each ``by``, with a column for each value of ``across``."""
    found: dict[tuple[object, ...], Json] = {}
    for row in rows:
        of = {name: row[name] for name in by}
        found.setdefault(tuple(of.values()), of)[str(row[across])] = row[figure]
    return list(found.values())


def _fastest_products(rows: Rows) -> Rows:
    fastest: dict[str, Json] = {}
    for row in rows:
        before = fastest.get(row["number_type"])
        if row.get("operations_per_s") and (before is None or row["operations_per_s"] > before["operations_per_s"]):
            fastest[row["number_type"]] = row
    return [
        {
            "number_type": name,
            "size": row["size"],
            "by": row.get("by", "PyTorch"),
            "value": _scaled(row["operations_per_s"], "op/s"),
        }
        for name, row in fastest.items()
    ]


def _roofs(rows: Rows) -> Rows:
    return [{"roof": row["roof"], "value": _scaled(row["value"], row["unit"]), "by": row["by"]} for row in rows]


def _links(rows: Rows) -> Rows:
    columns = ("way", "by", "trained_to", "share_of_pcie")
    return [{"value": _scaled(row["value"], "B/s"), **{name: row[name] for name in columns}} for row in rows]


def _copies(rows: Rows) -> Rows:
    name = "read_and_written_bytes_per_s"
    return [{"bytes": row["bytes"], "read and written": _scaled(row[name], "B/s")} for row in rows]


def _scaled(value: float | None, unit: str) -> str | None:
    if value is None:
        return None
    scale, prefix = next((each for each in _SCALES if value >= each[0]), (1.0, ""))
    return f"{value / scale:.4g} {prefix}{unit}"


_SELECTIONS: dict[str, Callable[[Rows], Rows]] = {
    "tests": _not_passed,
    "truth": _errors_by_method,
    "side by side": partial(_pivoted, by=("case",), across="method", figure="figure_ns"),
    "host cost of a sample": _columns("method", "ns"),
    "the driver's calls": _columns("call", "ns"),
    "methods": _columns("case", "method", "figure_ns", "difference_share", "invalid", "note"),
    "sensors by NVML alone": _columns("sensor", "call_ns", "new_every_ms"),
    "bursts by NVML alone": _columns("burst_s", "counter_j", "integral_j"),
    "energy of a steady load": partial(_pivoted, by=("seconds", "trial"), across="field", figure="joules"),
    "copies to the device": _columns("mib", "pinned", "gb_per_s"),
    "the feeder": _columns("batch_mib", "order", "threads", "gb_per_s", "own_gb_per_s"),
    "copies while the device works": _columns(
        "batch_mib", "copies_s", "work_s", "both_s", "hidden_share", "hidden_by_events"
    ),
    "DataLoader": _columns("batch_mib", "workers", "gb_per_s", "note"),
    "roofs": _roofs,
    "links": _links,
    "copies from pinned memory": _columns("way", "gb_per_s", "least"),
    "copies": _copies,
    "products": _fastest_products,
    "races": _columns("race", "contestant", "median_ns", "outcome", "note"),
    "verdicts": _columns("race", "blocks", "ratio", "sentence"),
    "times faster than PyTorch eager": _columns("race", "contestant", "ratio"),
    "A/A": _columns("verdict", "ratio", "interval", "blocks"),
}

_TITLES = {
    "tests": "tests that failed or were interrupted",
    "truth": "error by method, over all lengths",
    "side by side": "the same work by each timer, ns",
    "methods": "each method, and its difference from the busy time in the records",
    "energy of a steady load": "energy of a steady load, J",
    "copies": "copies on the device",
    "products": "the fastest matrix products",
}
