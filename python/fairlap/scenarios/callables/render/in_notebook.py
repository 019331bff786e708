"""A comparison of callables within a notebook: the answer, a table, a picture, and what limits the answer."""

from __future__ import annotations

from functools import partial

from fairlap.render.charts.interval_lines import IntervalLine, interval_lines
from fairlap.render.document import Picture, Table
from fairlap.render.encoders.page import wide_table
from fairlap.render.inline.fragment import figure, fragment, notes
from fairlap.render.report.answer import headline_of, sentences
from fairlap.render.report.markup import Markup, breaking, tag
from fairlap.scenarios.callables.render.axes_words import estimate_of
from fairlap.scenarios.callables.result import InProcessComparison

_HEADS = ("place", "callable", "time of a call", "against the first", "verdict")


def html_of(shown: InProcessComparison) -> str:
    of_all = shown.warnings_of_all
    warnings = [
        *(
            f"{row.name}: {each.text} [{each.code}]"
            for row in shown.rows
            for each in row.warnings
            if each not in of_all
        ),
        *(f"{each.text} [{each.code}]" for each in of_all),
    ]
    ended = [shown.ended_early] if shown.ended_early else []
    return fragment(
        tag("p", breaking(headline_of(shown.standing, shown.comparisons)), class_="headline"),
        tag("p", f"{shown.setting}.", class_="basis"),
        (tag("p", reason, class_="note") for reason in shown.reasons),
        sentences(shown.standing, shown.comparisons),
        wide_table(Table("Callables", _HEADS, [_cells(shown, place) for place in range(len(shown.rows))])),
        _picture(shown),
        notes([*warnings, *ended, *shown.closing]),
    )


def _cells(shown: InProcessComparison, number: int) -> list[str]:
    row = shown.rows[number]
    place, time, times, relations = shown.cells(row)
    return [place, row.name, time, times, relations]


def _picture(shown: InProcessComparison) -> Markup | None:
    lines = [
        IntervalLine(row.name, found.value, found.low, found.high, row.text, number)
        for number, row in enumerate(shown.rows)
        if (found := estimate_of(row)) is not None and row.name not in shown.answers.wrong
    ]
    if len(lines) < 2:
        return None
    described = f"Time of a call: {'; '.join(f'{line.name} {line.text}' for line in lines)}"
    note = "Median times over blocks, with 95 % intervals. The axis is logarithmic and does not begin at 0."
    return figure(Picture(described, partial(interval_lines, lines, described), note))
