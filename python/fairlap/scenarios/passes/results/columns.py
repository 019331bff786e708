"""Columns that mean something else, or nothing, where a call is a pass over data."""

from __future__ import annotations

from functools import partial

from fairlap.request.work import Work
from fairlap.results.estimates import Cell, absence_reason, cell_or, estimate, inverse, times
from fairlap.results.prices import Price
from fairlap.results.scenario_side import ResultsSide
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.passes.scenario import items_per_s

_NS = 1e9


class PassesColumns(ResultsSide):
    def cells(self, result: ContestantResult, work: Work, price: Price | None) -> dict[str, Cell]:
        """By the time of passes alone: from a cold page cache, that of a call has the eviction in it."""
        if not work.of_data:
            return {}
        rate = estimate(result.finished, partial(items_per_s, work.batch))
        cells = {"throughput_per_s": cell_or(rate, absence_reason(result))}
        item_ns = None if rate is None else inverse(rate, _NS)
        if price is not None and item_ns is not None:
            cells["cost_per_1000_items"] = Cell(times(item_ns, price.of_1000_items_per_ns(1)))
        return cells
