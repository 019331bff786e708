"""Which contestants meet the requirements, and the recommendation."""

from __future__ import annotations

from fairlap.render.report.markup import Markup, scrolling, table, tag
from fairlap.render.text.decision import MARKS, mean_text
from fairlap.results.results import Results


def decided(shown: Results) -> Markup | None:
    """Return a card at the top: what was recommended first, then who meets the requirements, and why not."""
    found = shown.decision
    if found is None:
        return None
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
    return tag("section", tag("h2", "Decision"), sentences, scrolling("Requirements", listed), id="decision")
