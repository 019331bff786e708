"""A race within a notebook: the decision, the answer, the ranked table and a picture of each work."""

from __future__ import annotations

from functools import partial

from fairlap.render.charts.interval_lines import IntervalLine, interval_lines
from fairlap.render.document import Picture, Table
from fairlap.render.encoders.page import wide_table
from fairlap.render.inline.fragment import figure, fragment, notes
from fairlap.render.items_by_batch import noted_least_times
from fairlap.render.judged import common_unit_ns, judged_text
from fairlap.render.report.answer import answer, headline, headline_of_one
from fairlap.render.report.decision import decided
from fairlap.render.report.markup import Markup, scrolling, tag
from fairlap.render.report.ranked_table import ranked_table
from fairlap.render.text.works_table import MOST_IN_FULL
from fairlap.request.work import Work
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult


def html_of(shown: Results) -> str:
    works = shown.works()
    if not works:
        return fragment(tag("p", "Nothing was measured", class_="headline"))
    alone = headline_of_one(shown)
    return fragment(
        decided(shown),
        tag("p", alone, class_="headline") if alone else None,
        _overview(shown) if len(works) > 1 else None,
        notes(noted_least_times(shown.rows)),
        (_work(shown, work, folded=len(works) > MOST_IN_FULL) for work in works),
        contestants=len(shown.contestants),
    )


def _overview(shown: Results) -> Markup:
    rows = [[shown.run.plan.title_of(work), headline(shown.of_work(work)[0])] for work in shown.works()]
    return wide_table(Table("All works", ("work", "answer"), rows))


def _work(shown: Results, work: Work, *, folded: bool) -> Markup:
    first, *others = shown.of_work(work)
    parts = [
        answer(shown, first),
        _ranked(shown, first),
        _picture(shown, first),
        *(_ranked(shown, each) for each in others),
    ]
    if not folded:
        return tag("div", *parts)
    return tag("details", tag("summary", shown.run.plan.title_of(work)), *parts)


def _ranked(shown: Results, found: WorkResult) -> Markup:
    return scrolling(f"Ranked: {found.work.label}, {found.conditions}", ranked_table(shown, found))


def _picture(shown: Results, found: WorkResult) -> Markup | None:
    """None where a table of one figure says as much."""
    unit_ns = common_unit_ns(found.rows)
    lines = [
        IntervalLine(
            row.contestant,
            row.judged.value,
            row.judged.low,
            row.judged.high,
            judged_text(row, unit_ns),
            shown.contestants.index(row.contestant),
        )
        for row in found.rows
        if row.judged is not None and row.judged.value > 0
    ]
    if len(lines) < 2:
        return None
    described = f"{found.basis.judged.by}: {'; '.join(f'{line.name} {line.text}' for line in lines)}"
    by = found.basis.judged.by
    note = f"{by[:1].upper()}{by[1:]}, with 95 % intervals. The axis is logarithmic and does not begin at 0."
    return figure(Picture(described, partial(interval_lines, lines, described), note))
