"""Which contestants qualify, and the recommendation, as text."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.results.decision.decision import Decision, Judged, MeanOverWorks

MARKS = {"yes": "qualifies", "no": "does not qualify", "unknown": "unknown"}


def decision_lines(found: Decision) -> list[str]:
    """Name the work in each line, where there are several."""
    lines = [f"requirements: {', '.join(found.requirements)}"] if found.requirements else []
    if found.requirements or any(each.qualifies != "yes" for each in found.judged):
        several = len({each.work for each in found.judged}) > 1
        lines += [f"  {_judged_line(each, with_work=several)}" for each in found.judged]
    return [*lines, *map(mean_text, found.means), *found.sentences]


def mean_text(each: MeanOverWorks) -> str:
    ratio = quantity_text.ratio_interval(each.ratio, each.low, each.high)
    what = f"{each.contestant} takes {ratio} times as long as {each.baseline}"
    if each.inverse:
        what = f"the {each.inverse} of {each.baseline} is {ratio} times that of {each.contestant}"
    works, blocks = quantity_text.count(each.works, "work"), quantity_text.count(each.blocks, "block")
    return f"geometric mean over {works}: {what} ({blocks}; a summary, no verdict)"


def _judged_line(each: Judged, *, with_work: bool) -> str:
    name = f"{each.contestant} in {each.run}" if each.run else each.contestant
    work = f" on {each.work}" if with_work else ""
    reasons = "; ".join(f"{requirement}: {why}" for requirement, why in each.reasons.items())
    return f"{MARKS[each.qualifies]}: {name}{work}{f' ({reasons})' if reasons else ''}"
