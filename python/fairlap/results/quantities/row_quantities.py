"""Quantities of rows by the names that options take: as gates call them, a column without its unit, or a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.models.task_metrics import found_metric, metric_named
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.flat_row import Column, columns
from fairlap.suggestions import did_you_mean

E_QUANTITY = "E_QUANTITY"
TIMES = ("ns", "s", "1/s")
"""Units of what is compared as a time."""

SCORES = "scores"
_OF_COMPARISONS = ("verdict", "cost")  # what depends on the baseline, or on the price of the day
_UNITS = {"_per_s": "1/s", "_per_w": "", "_ns": "ns", "_s": "s", "_bytes": "B", "_j": "J", "_w": "W"}
_SHARES = ("_share", "_relative", "_drop", "accuracy", "efficiency")
_OTHER_NAMES = {
    "latency": "latency_p50_ns",
    "memory": "peak_memory_bytes",
    "memory_peak": "peak_memory_bytes",
    "installed_size": "installed_bytes",
    "allocated": "allocated_bytes",
    "compile_time": "compile_cold_s",
    "energy": "energy_per_item_j",
    "rate": "largest_rate_per_s",
    "score": "accuracy",
    "size": "largest_batch",
}
_BISECTED = {
    "latency_p50_ns": "wall",
    "peak_memory_bytes": "memory_peak",
    "cpu_time_ns": "cpu_time",
    "compile_cold_s": "compile_time",
    "compile_warm_s": "compile_time",
    "time_to_first_inference_s": "time_to_first",
    "time_to_first_gradient_s": "time_to_first",
}


class RowQuantity(msgspec.Struct, frozen=True):
    key: str  # as it was named
    column: str
    metric: str = ""  # of the column ``scores``: top1, or top1:logits

    @property
    def title(self) -> str:
        return self.metric or _without_unit(self.column).replace("_", " ")

    @property
    def unit(self) -> str:
        """ns, s, 1/s, B, J, W, share, or none."""
        if self.metric:
            return "share" if metric_named(self.metric).best_is_1 else ""
        return "share" if self.column.endswith(_SHARES) else _UNITS.get(_suffix(self.column), "")

    @property
    def bisected_as(self) -> str:
        """Give its name in `fairlap bisect`; empty where that cannot search by it."""
        return _BISECTED.get(self.column, "")

    @property
    def read(self) -> tuple[str, ...]:
        """List the flat columns that hold it."""
        if self.metric:
            return (SCORES,)
        ends = [f"{self.column}_{end}" for end in ("low", "high")]
        return (self.column, *(end for end in ends if end in _names()))

    def value(self, cells: Mapping[str, Any]) -> Estimate | None:
        """Read it from the flat cells of a row; one without a ratio to others, such as 0, is as good as none."""
        found = self._score(cells[SCORES]) if self.metric else None
        if not self.metric and cells[self.column] is not None:
            found = Estimate(*(cells.get(name) for name in (self.column, *self.read[1:])))  # type: ignore[arg-type]
        return found if found is not None and found.value > 0 else None

    def _score(self, cell: str | None) -> Estimate | None:
        try:
            scores = msgspec.json.decode(cell or "{}", type=dict[str, Estimate])
        except msgspec.ValidationError:  # of an older fairlap
            return None
        names = (name for name in scores if self.metric in (name, name.partition(":")[0]))
        return next((scores[name] for name in names), None)


def row_quantity(name: str) -> RowQuantity:
    """Find the column; an unknown name is refused with the nearest ones."""
    if found_metric(name) is not None:
        return RowQuantity(name, SCORES, name)
    known = {_without_unit(each.name): each.name for each in quantity_columns()}
    known |= {each.name: each.name for each in quantity_columns()} | _OTHER_NAMES
    if name in known:
        return RowQuantity(name, known[name])
    hint = did_you_mean(name, known, most=3) or "such as memory_peak, cpu_time or energy_per_item"
    raise InvalidRequest(f"no row has a quantity {name!r}; {hint}", code=E_QUANTITY)


def quantity_columns() -> list[Column]:
    """List the columns with a number that was measured of a contestant; what was asked of it is never absent."""
    return [
        each
        for each in columns()
        if each.name == each.field
        and each.kind in ("number", "whole")
        and each.nullable
        and each.group not in _OF_COMPARISONS
        and each.name != "judged"
    ]


def _names() -> set[str]:
    return {each.name for each in columns()}


def _suffix(column: str) -> str:
    return max((suffix for suffix in _UNITS if column.endswith(suffix)), key=len, default="")


def _without_unit(column: str) -> str:
    return column.removesuffix(_suffix(column))
