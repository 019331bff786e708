"""A race from file to answer in words: every stage, answers per second, and the model's difference in the whole."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.render.scenario_side import RenderSide, Words, require_command
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row


class FilesShown(RenderSide):
    def words(self, plan: Plan) -> Words:
        """Of the first work: all have the same files and functions."""
        first = plan.works[0].stages
        assert first is not None
        require_command(all(work.stages == first for work in plan.works))
        words = ["--items", first.items, "--before", ",".join(first.before)]
        return [*words, *(["--after", ",".join(first.after)] if first.after else [])]

    def lines(self, row: Row) -> list[str]:
        return [*_stages(row), *_rates(row)]

    def notes(self, rows: Sequence[Row]) -> list[str]:
        asked = [row for row in rows if row.file_stages]
        return [_ABOUT, *_model_against_whole(asked)] if asked else []


_ABOUT = (
    "Ranked by the time from file to answer: the median of each file, averaged over the files. Latency and energy are "
    "those of the model's calls alone, on drawn inputs; memory is that of the process with your functions."
)


def _stages(row: Row) -> list[str]:
    if not row.file_stages:
        return []
    parts = [
        f"{each.stage} {quantity_text.duration(each.stage_ns.value)} ({quantity_text.share(each.share)})"
        for each in row.file_stages
    ]
    return [f"stages: {', '.join(parts)}"]


def _rates(row: Row) -> list[str]:
    one_by_one, overlapped = row.file_answers_per_s, row.file_overlapped_per_s
    if one_by_one is None or overlapped is None:
        return []
    times = quantity_text.number(overlapped.value / one_by_one.value)
    return [
        f"one after the other {quantity_text.rate(one_by_one.value)}, with the next file's stages on a second thread "
        f"{quantity_text.rate(overlapped.value)} ({times} times)"
    ]


def _model_against_whole(rows: Sequence[Row]) -> list[str]:
    """Compare each with the quickest by the whole, which the judged figure of a row is."""
    known = [row for row in rows if row.judged is not None and row.file_model_ns is not None]
    if len(known) < 2:
        return []
    first, *others = sorted(known, key=_whole_ns)
    ratios = [
        f"{row.contestant} {_times(_whole_ns(row), _whole_ns(first))} and {_times(_model_ns(row), _model_ns(first))}"
        for row in others
    ]
    about = f"Multiples of {first.contestant}'s time from file to answer, and of its model alone"
    return [f"{about}: {', '.join(ratios)}."]


def _times(one_ns: float, other_ns: float) -> str:
    return quantity_text.number(one_ns / other_ns)


def _whole_ns(row: Row) -> float:
    assert row.judged is not None
    return row.judged.value


def _model_ns(row: Row) -> float:
    found: Estimate | None = row.file_model_ns
    assert found is not None
    return found.value
