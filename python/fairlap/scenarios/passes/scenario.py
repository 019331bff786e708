"""The scenario of input pipelines: contestants are ranked by the items per second of whole passes over data on disk."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from fairlap import verdict
from fairlap.request.fields.data.stored_data import stored_data_in
from fairlap.request.work import Work
from fairlap.scenarios.added import AddedFigure
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario
from fairlap.scenarios.process_result import ProcessResult

_BY = "items per second over whole passes"
_S = 1e9


def items_per_s(items: int, process: ProcessResult) -> float | None:
    """By the median pass."""
    return _S * items / process.headline_ns if process.timings else None


def _first_batch_s(process: ProcessResult) -> float | None:
    return None if process.passes is None else process.passes.first_batch_s


class PassesOverData(Scenario):
    after_turns = "fairlap.scenarios.passes.race.looked_at_pass:LookedAtPass"
    race_side = "fairlap.scenarios.passes.race.from_request:PassesFromRequest"
    results_side = "fairlap.scenarios.passes.results.columns:PassesColumns"
    data_seeds = (0,)  # they draw the orders of passes alone
    figures = (AddedFigure("first_batch_s", _first_batch_s, "no pass was looked at to its end"),)

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.of_data

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        assert work.source is not None
        by = f"{_BY}, from a {stored_data_in(work.source.path).cache} page cache"
        metric = verdict.Metric("time per item of a pass", "ns", inverse="items per second")
        return Ruling(Judged(by, metric, partial(items_per_s, work.batch), "1/s"))
