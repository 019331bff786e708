"""The scenario of calls whose sizes change: contestants are ranked by the time of a call over the mix."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from fairlap import verdict
from fairlap.request.work import Work
from fairlap.scenarios.added import Picture
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario
from fairlap.scenarios.process_result import ProcessResult

TIME_OVER_THE_MIX = "time of a call over the mix"


def _call_ns(process: ProcessResult) -> float | None:
    return None if process.mix is None else process.mix.call_ns


def _points(process: ProcessResult) -> Iterator[dict[str, float | str]]:
    for place, each in enumerate(() if process.mix is None else process.mix.sizes):
        if each.p50_ns is not None:
            yield {"size": each.label, "place": place, "ms": each.p50_ns / 1e6}


def _spec() -> dict[str, Any]:
    return {
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "size", "type": "ordinal", "sort": {"field": "place"}, "title": "size of the call"},
            "y": {"aggregate": "median", "field": "ms", "type": "quantitative", "title": "time of a call in ms"},
            "color": {"field": "contestant", "type": "nominal"},
        },
    }


_BY_SIZE = Picture(
    "by-size",
    "Time by size",
    "The median time of a call at each size, in the order of a mix: the middle one of all processes.",
    _points,
    _spec,
)


class MixedSizes(Scenario):
    judges_rounds = False
    after_turns = "fairlap.scenarios.mixed_sizes.race.mix_run:MixRun"
    race_side = "fairlap.scenarios.mixed_sizes.race.from_request:MixFromRequest"
    columns = "fairlap.scenarios.mixed_sizes.results.column_definitions:MixRow"
    results_side = "fairlap.scenarios.mixed_sizes.results.columns:MixColumns"
    render_side = "fairlap.scenarios.mixed_sizes.render.shown:MixShown"
    pictures = (_BY_SIZE,)

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.mix is not None

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        return Ruling(
            Judged(TIME_OVER_THE_MIX, verdict.Metric(TIME_OVER_THE_MIX, "ns"), _call_ns, period="after_turns")
        )

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        return any(_call_ns(process) is not None for process in finished)
