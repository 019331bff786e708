"""What came of a suite, for people: the verdicts first, one table of works by contestants, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.history.gate import GateFinding
from fairlap.render.charts.parts.chart import measured_axis, ratio_scale, spec_of, with_ends
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.render.judged import RATIOS_OF_BLOCKS
from fairlap.request.suite import E_SUITE
from fairlap.suite.suite_document import RacedContestant, RaceDocument, RacedWork, SuiteDocument, trades_in

_WIDTH, _LINE_HEIGHT = 560, 26


def has_ratios(found: SuiteDocument) -> bool:
    return next(_points(found), None) is not None


def ratio_chart(found: SuiteDocument, look: Look) -> str:
    """Draw the point and the interval of each contestant but the baseline, and a line at 1."""
    points = list(_points(found))
    if not points:
        raise InvalidRequest("there is nothing to draw: no work of the suite has a ratio", code=E_SUITE)
    alt = altair()
    base = alt.Chart(alt.Data(values=points))
    y = alt.Y("line:N", sort=None, title=None, axis=alt.Axis(labelLimit=320))
    x = alt.X("ratio:Q", scale=ratio_scale(), axis=measured_axis("plain", "times as long as the baseline"))
    colour = alt.Color(
        "verdict:N",
        legend=alt.Legend(title=None, orient="top"),
        scale=alt.Scale(range=look.colours(len({each["verdict"] for each in points}))),
    )
    ends = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=alt.X("ratio_low:Q"), x2="ratio_high:Q", y=y, color=colour
    )
    middles = base.mark_point(size=80, filled=True, opacity=1).encode(x=x, y=y, color=colour)
    one = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(strokeDash=[4, 4]).encode(x="one:Q")
    chart = alt.layer(one, ends, middles).properties(width=_WIDTH, height=_LINE_HEIGHT * len(points))
    return drawn(spec_of(chart), look)


def _points(found: SuiteDocument) -> Iterator[dict[str, Any]]:
    several = {race.name for race in found.races if len(race.works) > 1}
    for race in found.races:
        for work in race.works:
            for each in work.contestants:
                if each.ratio is not None and each.contestant != each.baseline:
                    name = f"{race.name} · {work.title}" if race.name in several else race.name
                    yield {
                        "line": f"{name} · {each.contestant}",
                        "verdict": each.verdict or "",
                        **with_ends("ratio", each.ratio),
                    }


_GRAVEST_FIRST = ("slower", "exceeded", "not comparable", "inconclusive", "passed")
_SIGNS = {"equivalent": " =", "inconclusive": " ?"}
_MEANING = "= equivalent to the baseline, ? undecided; ratios are times as long as the baseline takes."
_VERDICTS = "Verdicts"
_ESTIMATES = ("judged", "ratio")


def document_of(found: SuiteDocument) -> Document:
    table = _between_sides(found) if found.base is not None else _by_contestant(found)
    chart = Picture("Ratios to the baseline", partial(ratio_chart, found)) if has_ratios(found) else None
    return Document(
        title=f"Suite {found.file}",
        facts=_facts(found),
        sections=[
            Section(_VERDICTS, notes=[*_verdicts(found), *(f"trade: {each}" for each in trades_in(found.races))]),
            Section(
                "Works", [table] if table.rows else [], [f"{_MEANING} {RATIOS_OF_BLOCKS}"] if table.rows else [], chart
            ),
            Section("Without a verdict", notes=list(_troubles(found))),
            Section(
                "Left out",
                [Table("Races that were not run", ("race", "why"), [[each.name, each.why] for each in found.left_out])]
                if found.left_out
                else [],
            ),
        ],
        data=found,
        records=_records(found),
        draw=partial(ratio_chart, found),
    )


def without_verdicts(shown: Document) -> Document:
    """Leave out the verdicts, where they have been written already."""
    return replace(shown, sections=[each for each in shown.sections if each.title != _VERDICTS])


def _facts(found: SuiteDocument) -> tuple[str, ...]:
    done = sum(race.state in ("finished", "failed") for race in found.races)
    races = f"{done} of {quantity_text.count(len(found.races), 'race')}"
    shard = f", shard {found.selection.shard.text}" if found.selection.shard else ""
    share = quantity_text.share(found.error_rate)
    return (
        f"suite {found.suite}: {races}{shard}, {found.state}",
        f"one error rate of {share} over {quantity_text.count(found.works, 'work')}; "
        f"{found.file} has the SHA-256 {found.sha256}",
    )


def _verdicts(found: SuiteDocument) -> list[str]:
    """Name what is not within its bound, gravest first, and count the rest."""
    findings = [each for race in found.races for each in race.findings]
    if not findings:
        won = Counter(c.contestant for _, work in _works(found) for c in work.contestants if c.place == "1")
        return [f"{name} is the fastest in {quantity_text.count(times, 'work')}" for name, times in won.most_common()]
    notes = [f"{each.status}: {each.text}" for each in _ordered(findings) if each.status != "passed"]
    passed = sum(each.status == "passed" for each in findings)
    return [*notes, f"{quantity_text.count(passed, 'comparison')} within the bound"] if passed else notes


def _ordered(findings: Sequence[GateFinding]) -> list[GateFinding]:
    return sorted(findings, key=lambda each: _GRAVEST_FIRST.index(each.status))


def _works(found: SuiteDocument) -> Iterator[tuple[RaceDocument, RacedWork]]:
    return ((race, work) for race in found.races for work in race.works)


def _between_sides(found: SuiteDocument) -> Table:
    rows = []
    for race, work in _works(found):
        by_name = {each.contestant: each for each in work.contestants}
        base, change = by_name.get("base"), by_name.get("change")
        word = _ordered(race.findings)[0].status if race.findings else ""
        ratio = _ratio(change) if change and change.ratio else ""
        p = f"{change.p:.2g}" if change and change.p is not None else ""
        rows.append([race.name, _figure(base), _figure(change), ratio, p, word])
    return Table("Base and change", ("race", "base", "change", "change/base", "p over the suite", "verdict"), rows)


def _by_contestant(found: SuiteDocument) -> Table:
    names = list(dict.fromkeys(c.contestant for _, work in _works(found) for c in work.contestants))
    rows = []
    for race, work in _works(found):
        by_name = {each.contestant: each for each in work.contestants}
        first = next((each.contestant for each in work.contestants if each.place == "1"), "undecided")
        title = work.title if work.conditions == "controlled" else f"{work.title} · {work.conditions}"
        rows.append([race.name, title, *(_cell(by_name.get(name)) for name in names), first])
    return Table("Works by contestants", ("race", "work", *names, "fastest"), rows)


def _cell(found: RacedContestant | None) -> str:
    """Show the figure of the baseline, and of the others how many times as long they take."""
    if found is None:
        return ""
    if found.judged is None:
        return found.code or found.outcome
    return _figure(found) if found.ratio is None or found.contestant == found.baseline else _ratio(found)


def _figure(found: RacedContestant | None) -> str:
    if found is None or found.judged is None:
        return "" if found is None else found.code or found.outcome
    return quantity_text.figure(found.judged.value, found.judged_unit, found.judged.low, found.judged.high)


def _ratio(found: RacedContestant) -> str:
    assert found.ratio is not None
    text = quantity_text.ratio_interval(found.ratio.value, found.ratio.low, found.ratio.high)
    return text + _SIGNS.get(found.verdict or "", "")


def _troubles(found: SuiteDocument) -> Iterator[str]:
    for race in found.races:
        if race.state != "finished":
            code = f" [{race.code}]" if race.code else ""
            yield f"{race.name}: {race.state}{f': {race.why}' if race.why else ''}{code}"
        for work in race.works:
            if work.why_no_verdict:
                yield f"{race.name}: no verdict: {work.why_no_verdict}"
            for each in work.contestants:
                if each.message:
                    yield f"{race.name}: {each.contestant}: {each.message}{f' [{each.code}]' if each.code else ''}"


def _records(found: SuiteDocument) -> Records:
    of_contestant = RacedContestant.__struct_fields__
    rows = [
        [race.name, ",".join(race.tags), race.run, work.title, work.conditions, work.blocks]
        + [getattr(each, name) for name in of_contestant]
        for race, work in _works(found)
        for each in work.contestants
    ]
    return Records(("race", "tags", "run", "work", "conditions", "blocks", *of_contestant), rows, _ESTIMATES)
