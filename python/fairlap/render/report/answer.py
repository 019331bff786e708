"""The answer at the top of the page: a headline, then the comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.render.items_by_batch import differ_in_batch_alone, item_texts
from fairlap.render.judged import judged_text, ratios_note
from fairlap.render.report.markup import Markup, breaking, tag
from fairlap.render.scenario_side import notes_on
from fairlap.request.work import Work
from fairlap.results.quantities.other_quantities import QUANTITIES_OF_A_DEVICE
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import WorkResult
from fairlap.verdict.warnings import TooFewBlocks


def headline(work_result: WorkResult) -> str:
    """Names a winner only where it was shown to be faster than all others."""
    if (alone := _alone(work_result)) is not None:
        return f"{alone.contestant}: {judged_text(alone)}"
    return headline_of(work_result.standing, work_result.comparisons)


def headline_of(standing: verdict.Standing | None, comparisons: Sequence[verdict.Comparison]) -> str:
    if standing is None:
        return "No verdict"
    if standing.winner is not None:
        inverse = comparisons[0].metric.inverse
        return f"{standing.winner} has the {inverse}" if inverse else f"{standing.winner} is the fastest"
    first = list(standing.unbeaten)
    if not first:
        return "No order: the comparisons are circular"
    both = [each for each in comparisons if each.a in first and each.b in first]
    if all(each.verdict is verdict.Verdict.EQUIVALENT for each in both):
        return f"{verdict.listed(first)} are equally fast, within {quantity_text.share(both[0].margin)}"
    if any(isinstance(warning, TooFewBlocks) for each in both for warning in each.warnings):
        return "Too few blocks for a verdict"
    if len(first) == len(standing.places):
        return f"Inconclusive between {verdict.listed(first)}" if len(first) == 2 else "Inconclusive: no winner"
    return f"The fastest is one of {verdict.listed(first)}; which one is inconclusive"


def headline_of_one(shown: Results) -> str:
    """Write a sentence about the only contestant at the first and the last of several works; empty for any other."""
    works = [shown.of_work(work)[0] for work in shown.works()]
    rows = [row for row in map(_alone, works) if row is not None]
    if len(works) < 2 or len(rows) < len(works):
        return ""
    ends = [f"{judged_text(row)} at batch {row.batch:,}" for row in (rows[0], rows[-1])]
    return f"{rows[0].contestant} alone, so nothing is compared: {' to '.join(ends)}"


def times_per_item(shown: Results) -> dict[Work, dict[str, Markup | str]]:
    """Make the cells of the overview's column, under the verdict's conditions; empty unless batches alone differ."""
    works = shown.works()
    rows = [row for work in works for row in shown.of_work(work)[0].rows]
    if not differ_in_batch_alone(rows):
        return {}
    named = len(shown.contestants) > 1
    texts = zip((row.batch for row in rows), (row.contestant for row in rows), item_texts(rows), strict=True)
    by_batch: dict[int, list[str]] = {}
    for batch, contestant, text in texts:
        if text:
            by_batch.setdefault(batch, []).append(f"{contestant} {text}" if named else text)
    return {work: {"time per item": "; ".join(by_batch.get(work.batch, []))} for work in works}


def _alone(work_result: WorkResult) -> Row | None:
    """Of a race of one contestant that has a figure; it has no verdict because it asks for none."""
    if len(work_result.rows) != 1 or work_result.basis.is_refused or not work_result.contestants[0].ranked:
        return None
    return work_result.rows[0] if work_result.rows[0].judged else None


def answer(shown: Results, work_result: WorkResult) -> Markup:
    """Render the answer for one work under the conditions of the verdict."""
    why = work_result.why_no_verdict
    return tag(
        "div",
        tag("p", breaking(headline(work_result)), class_="headline"),
        tag("p", _basis(shown, work_result), class_="basis"),
        tag("p", f"No verdict: {why}.", class_="note") if why and _alone(work_result) is None else None,
        _order_differs(shown, work_result),
        _busy(work_result),
        _note(work_result.mixed),
        _note(work_result.unknown_settings),
        sentences(work_result.standing, work_result.comparisons),
        [
            tag("p", note, class_="note")
            for note in (ratios_note(work_result.rows), *notes_on(work_result.rows))
            if note
        ],
        _further_quantities(work_result),
        class_="answer",
    )


def _busy(work_result: WorkResult) -> Markup | None:
    if not work_result.busy or work_result.basis.is_refused:  # which says the same
        return None
    return tag("p", tag("strong", _coded(work_result.busy)), class_="note")


def _note(found: Notice | None) -> Markup | None:
    return tag("p", _coded(found), class_="note") if found else None


def _coded(found: Notice) -> str:
    return f"{found.text[0].upper()}{found.text[1:]} [{found.code}]."


def _basis(shown: Results, work_result: WorkResult) -> str:
    seen = {process.block for result, _ in work_result.with_rows() for process in result.processes}
    plan, scale = shown.run.plan, work_result.work.scale
    threads = plan.threads_text(work_result.work) if scale is None else scale.text
    where = plan.scenario(work_result.work).where or f"on {plan.device} with {threads}"
    blocks = f"{len(work_result.blocks.kept)} of {quantity_text.count(len(seen), 'block')} used"
    return f"{shown.run.plan.title_of(work_result.work)}, {where}, {work_result.conditions}; {blocks}."


def sentences(standing: verdict.Standing | None, comparisons: Sequence[verdict.Comparison]) -> Markup | None:
    """Compare the first contestant with each of the others; the other pairs can be unfolded."""
    if standing is None:
        return None
    first = standing.places[0].contestant
    ours = [each for each in comparisons if first in (each.a, each.b)]
    others = [each for each in comparisons if first not in (each.a, each.b)]
    rest = None
    if others:
        rest = tag(
            "details",
            tag("summary", f"{quantity_text.count(len(others), 'more pair')}"),
            tag("ul", (_sentence(each) for each in others), class_="verdicts"),
        )
    return tag("div", tag("ul", (_sentence(each) for each in ours), class_="verdicts"), rest)


def _further_quantities(work_result: WorkResult) -> Markup | None:
    """By the time and the steps to a score, by what a program's runs used; and what the fastest is shown to cost."""
    first, *rest = work_result.contestants
    found = [
        f"By {other.metric.name}: {verdict.sentence(each)}"
        for other in work_result.other_quantities
        if other.is_shown and other.metric not in QUANTITIES_OF_A_DEVICE
        for each in other.comparisons
        if each.ratio != 1.0
    ]
    found += [f"Trade: {text}" for each in rest if (text := work_result.trade(first.contestant, each.contestant))]
    return tag("ul", (tag("li", text) for text in found), class_="verdicts") if found else None


def _sentence(each: verdict.Comparison) -> Markup:
    shown = each.verdict in (verdict.Verdict.FASTER, verdict.Verdict.SLOWER)
    kind = "shown" if shown else each.verdict.value
    sentence = verdict.sentence(each)
    if not shown:
        return tag("li", str(sentence), class_=kind)
    rest = f" {sentence.interval}, {sentence.details}"
    return tag("li", tag("strong", sentence.claim), tag("span", rest, class_="rest"), class_=kind)


def _order_differs(shown: Results, work_result: WorkResult) -> Markup | None:
    differs = shown.order_differs(work_result.work)
    if differs is None:
        return None
    found, controlled = (" < ".join(order) for order in differs)
    return tag(
        "p",
        tag("strong", "The order depends on the conditions. "),
        f"Controlled: {controlled}. As found: {found}.",
        class_="note",
    )
