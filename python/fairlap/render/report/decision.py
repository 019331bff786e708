"""Which contestants meet the requirements, and the recommendation."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.render.report.markup import Markup, scrolling, table, tag
from fairlap.render.text.decision import MARKS, mean_text
from fairlap.results.decision.decision import Decision
from fairlap.results.decision.gate_findings import Finding
from fairlap.results.results import Results


def decided(shown: Results) -> Markup | None:
    """Return a card at the top: what was recommended first, then who meets the requirements, and why not."""
    parts: list[Markup] = [] if shown.decision is None else _qualified(shown.decision)
    if shown.findings:
        rows = [_cells(each) for each in shown.findings]
        heads = ["requirement", "met", "ratio", "what was compared"]
        parts.append(scrolling("Bounds on changes", table("Bounds on changes", heads, rows, "cards")))
    return tag("section", tag("h2", "Decision"), parts, id="decision") if parts else None


def _qualified(found: Decision) -> list[Markup]:
    rows = [
        {
            "contestant": each.contestant,
            "work": each.work,
            "qualifies": MARKS[each.qualifies],
            "why": "; ".join(f"{requirement}: {why}" for requirement, why in each.reasons.items()),
        }
        for each in found.judged
    ]
    caption = ", ".join(found.requirements) or "no requirements"
    listed = table(f"Requirements: {caption}", ["contestant", "work", "qualifies", "why"], rows, "cards")
    sentences = (tag("p", sentence) for sentence in (*map(mean_text, found.means), *found.sentences))
    return [*sentences, scrolling("Requirements", listed)]


def _cells(found: Finding) -> dict[str, str]:
    ratio = "" if found.ratio is None else quantity_text.ratio_interval(found.ratio, found.low, found.high)
    return {
        "requirement": found.required or "largest slowdown",
        "met": found.word,
        "ratio": ratio,
        "what was compared": found.text,
    }
