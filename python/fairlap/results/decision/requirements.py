"""Requirements such as ``latency_p99<20ms, memory<4GB, top1>=90%`` over the columns of a row and its scores."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.task_metrics import ACCURACY, found_metric
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.decision.estimate_text import estimate_text, interval_text
from fairlap.results.flat_row import columns
from fairlap.results.quantities.other_quantities import quantity_keys
from fairlap.results.row import Row
from fairlap.suggestions import did_you_mean

Status = Literal["yes", "no", "unknown"]

_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*(@\d+)?(:[^<>=\s]+)?)\s*(?P<operator><=|>=|<|>)\s*(?P<limit>[^<>=]+?)\s*"
)
_LIMIT = re.compile(r"(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>%|µs|[A-Za-z/]*)")

_DURATIONS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
_SIZES = {"B": 1.0} | {
    f"{prefix}{ending}": base**power
    for ending, base in (("B", 1000.0), ("iB", 1024.0))
    for power, prefix in enumerate(("K", "M", "G", "T"), start=1)
}
# The longest suffix of a column that fits decides which units it takes: the factors lead to the column's own unit.
UNITS: dict[str, dict[str, float]] = {
    "_per_s": {"/s": 1.0, "": 1.0},
    "_ns": _DURATIONS_NS,
    "_s": {unit: ns / 1e9 for unit, ns in _DURATIONS_NS.items()},
    "_bytes": _SIZES,
    "_j": {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "kJ": 1e3, "Wh": 3600.0, "kWh": 3.6e6},
    "_w": {"W": 1.0, "mW": 1e-3, "kW": 1e3},
    "_share": {"%": 0.01, "": 1.0},
    "_relative": {"%": 0.01, "": 1.0},
    "_drop": {"%": 0.01, "": 1.0},
    "_score": {"%": 0.01, "": 1.0},
    "accuracy": {"%": 0.01, "": 1.0},
}
SHORT_NAMES = {
    "latency": "latency_p50_ns",
    "throughput": "throughput_per_s",
    "memory": "peak_memory_bytes",
    "memory_peak": "peak_memory_bytes",
    "compile_time": "compile_cold_s",
    "cost": "cost_per_1000_items",
    "energy": "energy_per_item_j",
    "power": "mean_power_w",
    "error": "error_relative",
    "rate": "largest_rate_per_s",
}


class Requirement(msgspec.Struct, frozen=True):
    text: str
    column: str
    operator: Literal["<", "<=", ">", ">="]
    limit: float  # in the unit of the column
    currency: str = ""  # of a limit on money; empty: whatever the price is in
    metric: str = ""  # of the column ``scores``: top1, or top1:logits

    def status_of(self, row: Row) -> tuple[Status, str]:
        """Check the requirement, and explain where it is not met.

        A figure whose interval contains the limit is unknown, and so is an estimate without an interval.
        """
        value: Estimate | float | None = self._score_in(row) if self.metric else getattr(row, self.column)
        if value is None and self.metric:
            return "unknown", f"no {self.metric}: the metric was not asked for, or it answered nothing"
        if value is None:
            return "unknown", f"no {self.column}: {row.absent[self.column]}"
        if self.currency and row.currency != self.currency:
            return "unknown", f"its cost is in {row.currency}, not in {self.currency}"
        if not isinstance(value, Estimate):
            return ("yes", "") if self._met(value) else ("no", f"it is {estimate_text(self.column, Estimate(value))}")
        shown = f"it is {interval_text(value) if self.metric else estimate_text(self.column, value)}"
        if value.low is None or value.high is None:
            return "unknown", f"{shown}, without an interval"
        ends = [self._met(end) for end in (value.low, value.high)]
        if all(ends):
            return "yes", ""
        return ("unknown", f"{shown}, around the limit") if any(ends) else ("no", shown)

    def _score_in(self, row: Row) -> Estimate | None:
        """Of the metric, whichever output it scores unless the requirement names one."""
        found = next((score for name, score in row.scores.items() if _is_of(self.metric, name)), None)
        return None if found is None else Estimate(found.value, found.low, found.high)

    def lacks_metric(self, computed: Collection[str]) -> str:
        """Name the metric that it needs and that is not among these; empty where there is none."""
        needed = self.metric or (ACCURACY if self.column == "accuracy" else "")
        return "" if not needed or any(_is_of(needed, name) for name in computed) else needed

    def _met(self, value: float) -> bool:
        if self.operator in ("<", "<="):
            return value < self.limit or (self.operator == "<=" and value == self.limit)
        return value > self.limit or (self.operator == ">=" and value == self.limit)


def _is_of(metric: str, name: str) -> bool:
    return metric in (name, name.partition(":")[0])


def requirements_of(text: str) -> tuple[Requirement, ...]:
    """Separated by commas; all of them count."""
    parts = [part.strip() for part in text.split(",")]
    if not any(parts):
        raise _wrong("it is empty; write it as latency_p99<20ms, memory<4GB")
    if not all(parts):
        raise _wrong(f"a condition is empty in {text!r}; one is missing between commas, or there is a comma too many")
    return tuple(map(_requirement, parts))


class Qualification(msgspec.Struct, frozen=True):
    """Of one contestant: it qualifies where every requirement is met, and does not where one is not."""

    status: Status
    reasons: dict[str, str]  # by the text of the requirement, why it is not met or unknown


def qualification(row: Row, requirements: Sequence[Requirement]) -> Qualification:
    found = {each.text: each.status_of(row) for each in requirements}
    reasons = {text: why for text, (status, why) in found.items() if status != "yes"}
    if why := why_out(row):
        return Qualification("no", {"a place in the ranking": why, **reasons})
    statuses = {status for status, _ in found.values()}
    status: Status = "no" if "no" in statuses else "unknown" if "unknown" in statuses else "yes"
    return Qualification(status, reasons)


def why_out(row: Row) -> str:
    """Why a contestant cannot be chosen at all: it did other work than asked for, or none. Empty where it can be."""
    if row.processes_finished == 0 or row.outcome in ("disqualified", "unqualified"):
        return row.message or "no process finished"
    return ""


def _requirement(text: str) -> Requirement:
    found = _REQUIREMENT.fullmatch(text)
    if found is None:
        raise _wrong(f"{text!r} is not a column with <, <=, > or >= and a limit, such as latency_p99<20ms")
    metric = found_metric(found["name"])
    if found["limit"][0] == "+" or (found["limit"][0] == "-" and metric is None):
        raise _wrong(
            f"{text!r} is a change from a baseline, which `fairlap compare` and `gate` judge; give a limit here"
        )
    if metric is not None:
        limit, _ = _limit(text, "_score" if metric.best_is_1 else "", found["limit"])
        return Requirement(text, "scores", found["operator"], limit, metric=found["name"])  # type: ignore[arg-type]
    column = _column(found["name"])
    change = f"{found['name']}{found['operator']}+2%" if found["name"] in quantity_keys() else ""
    limit, currency = _limit(text, column, found["limit"], change)
    return Requirement(text, column, found["operator"], limit, currency)  # type: ignore[arg-type]


def _column(name: str) -> str:
    """By its name, with its unit or without, or by a short name."""
    numbers = [each.name for each in columns() if each.kind in ("number", "whole") and each.name == each.field]
    by_name = {_without_unit(column): column for column in numbers} | {column: column for column in numbers}
    by_name |= SHORT_NAMES
    if name in by_name:
        return by_name[name]
    hint = did_you_mean(name, by_name, most=3) or "docs/reference/row.md lists the columns"
    raise _wrong(f"there is no column {name!r} with a number; {hint}")


def _without_unit(column: str) -> str:
    suffix = _suffix(column)
    return column.removesuffix(suffix) if suffix in ("_ns", "_s", "_bytes", "_j", "_w", "_per_s") else column


def _suffix(column: str) -> str:
    return max((suffix for suffix in UNITS if column.endswith(suffix)), key=len, default="")


def _limit(text: str, column: str, limit: str, change: str = "") -> tuple[float, str]:
    """Read a number in the unit of the column, and a currency. ``change`` is a bound that may have been meant."""
    found = _LIMIT.fullmatch(limit)
    if found is None or not math.isfinite(float(found["number"])):
        raise _wrong(f"the limit of {text!r} is not a number with a unit")
    number, unit = float(found["number"]), found["unit"]
    if any(each.about.is_money for each in columns() if each.field == column):
        if unit and re.fullmatch(r"[A-Za-z]{3}", unit) is None:
            raise _wrong(f"the limit of {text!r} is money: 0.02, or 0.02EUR")
        return number, unit.upper()
    units = UNITS.get(_suffix(column), {"": 1.0})
    if unit not in units:
        named = ", ".join(each or "none" for each in units)
        meant = f"; a change from the baseline is written {change}" if change and unit in ("", "%") else ""
        raise _wrong(f"the unit of {text!r} has to be one of: {named}{meant}")
    return number * units[unit], ""


def _wrong(why: str) -> InvalidRequest:
    return InvalidRequest(f"--require: {why}", code="E_REQUIRE")
