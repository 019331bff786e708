"""The answer on top: who is fastest, in one line; then what shows it, pair by pair."""

from __future__ import annotations

from fairlap import quantity_text, verdict
from fairlap.render.report.markup import Markup, breaking, tag
from fairlap.request.work import work_title
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult
from fairlap.verdict.warnings import TooFewBlocks


def headline(work_result: WorkResult) -> str:
    """The shortest true sentence about the order. Only a shown difference makes a winner."""
    standing = work_result.standing
    if standing is None:
        return "No verdict"
    if standing.winner is not None:
        return f"{standing.winner} is the fastest"
    first = list(standing.unbeaten)
    if not first:
        return "No order: the comparisons run in a circle"
    both = [each for each in work_result.comparisons if each.a in first and each.b in first]
    if all(each.verdict is verdict.Verdict.EQUIVALENT for each in both):
        return f"{listed(first)} are equally fast, within {quantity_text.share(both[0].margin)}"
    if any(isinstance(warning, TooFewBlocks) for each in both for warning in each.warnings):
        return "Too few blocks to tell"
    if len(first) == len(work_result.standing.places if work_result.standing else ()):
        return f"No difference is shown between {listed(first)}" if len(first) == 2 else "No winner is shown"
    return f"{listed(first)} are ahead; which of them is faster is not shown"


def listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def answer(shown: Results, told: WorkResult) -> Markup:
    """One work's answer under the conditions of the verdict."""
    work_result = told
    return tag(
        "div",
        tag("p", breaking(headline(work_result)), class_="headline"),
        tag("p", _basis(shown, told), class_="basis"),
        tag("p", f"Why there is no verdict: {work_result.why_no_verdict}.", class_="note")
        if work_result.why_no_verdict
        else None,
        _order_differs(shown, told),
        _busy(work_result),
        _sentences(work_result),
        class_="answer",
    )


def _busy(work_result: WorkResult) -> Markup | None:
    if not work_result.busy:
        return None
    return tag("p", tag("strong", f"{work_result.busy.text[0].upper()}{work_result.busy.text[1:]}"), ".", class_="note")


def _basis(shown: Results, told: WorkResult) -> str:
    seen = {process.block for result, _ in told.with_rows() for process in result.processes}
    threads = quantity_text.count(shown.run.plan.threads, "thread")
    where = f"on {shown.run.plan.device} with {threads}"
    blocks = f"{len(told.blocks.kept)} of {quantity_text.count(len(seen), 'block')} count"
    return f"{work_title(told.work.label, shown.run.plan.data)}, {where}, {told.conditions}; {blocks}."


def _sentences(work_result: WorkResult) -> Markup | None:
    """The first against each of the others at once; every other pair where it is asked for."""
    if work_result.standing is None:
        return None
    first = work_result.standing.places[0].contestant
    ours = [each for each in work_result.comparisons if first in (each.a, each.b)]
    others = [each for each in work_result.comparisons if first not in (each.a, each.b)]
    rest = None
    if others:
        rest = tag(
            "details",
            tag("summary", f"The other {quantity_text.count(len(others), 'pair')}"),
            tag("ul", (_sentence(each) for each in others), class_="verdicts"),
        )
    return tag("div", tag("ul", (_sentence(each) for each in ours), class_="verdicts"), rest)


def _sentence(each: verdict.Comparison) -> Markup:
    shown = each.verdict in (verdict.Verdict.FASTER, verdict.Verdict.SLOWER)
    kind = "shown" if shown else each.verdict.value
    sentence = verdict.sentence(each)
    if not shown:
        return tag("li", str(sentence), class_=kind)
    rest = f" {sentence.interval}, {sentence.details}"
    return tag("li", tag("strong", sentence.claim), tag("span", rest, class_="rest"), class_=kind)


def _order_differs(shown: Results, told: WorkResult) -> Markup | None:
    differs = shown.order_differs(told.work)
    if differs is None:
        return None
    found, controlled = (" < ".join(order) for order in differs)
    return tag(
        "p",
        tag("strong", "The order depends on the conditions. "),
        f"Controlled: {controlled}. As found: {found}.",
        class_="note",
    )
