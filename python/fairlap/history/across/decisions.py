"""Requirements and a recommendation over runs side by side: one decision for each work."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.history.across.lines import Entry
from fairlap.results.decision.decision import Decision
from fairlap.results.decision.evidence import Difference, by_intervals
from fairlap.results.decision.question import Question, doubts, judged_as, recommended
from fairlap.results.decision.recommendation import recommend
from fairlap.results.decision.requirements import qualification
from fairlap.results.decision.uses import COST, FIRST, LATENCY, P99, THROUGHPUT, Weight

_OF_THE_VERDICT = (LATENCY.column, THROUGHPUT.column, COST.column)  # within a run, which has one price
_OF_OTHER_VERDICTS = (P99.column, FIRST.column)  # which rows do not hold
_SHOWN = ("faster", "slower")


def decisions_of(entries: Sequence[Entry], question: Question) -> list[Decision]:
    works = dict.fromkeys(entry.line.done for entry in entries)
    return [_decision([entry for entry in entries if entry.line.done == work], question) for work in works]


def _decision(entries: Sequence[Entry], question: Question) -> Decision:
    by_name = {entry.name: entry for entry in entries}
    judged = [
        judged_as(
            qualification(entry.row, question.requirements),
            contestant=entry.line.contestant,
            work=entry.line.work,
            run=entry.line.run,
        )
        for entry in entries
    ]
    found = Decision(requirements=[each.text for each in question.requirements], judged=judged)
    if question.use is None:
        return found
    statuses = {name: each.qualifies for name, each in zip(by_name, judged, strict=True)}

    def evidence(a: str, b: str, weight: Weight) -> Difference:
        return _difference(by_name[a], by_name[b], weight)

    return recommended(found, question.use, recommend(statuses, question.use, evidence, doubts(judged)))


def _difference(a: Entry, b: Entry, weight: Weight) -> Difference:
    """Compare two entries by their intervals between runs, and by the row's verdict within a run.

    Between runs there is no verdict, only intervals. Within a run, it is the verdict of the row on the time of a call;
    where the row has no verdict on these two or on this column, no difference is claimed.
    """
    if a.line.run != b.line.run:
        return by_intervals(a.row, b.row, weight, basis="intervals of separate runs are apart")
    found = by_intervals(a.row, b.row, weight)
    if found.ratio is None or weight.column not in (*_OF_THE_VERDICT, *_OF_OTHER_VERDICTS):
        return found
    row, other, inverted = (a.row, b.row, False) if a.row.baseline == b.row.contestant else (b.row, a.row, True)
    of_calls = weight.column in _OF_THE_VERDICT and row.judged == row.latency_p50_ns
    if not of_calls or row.baseline != other.contestant or row.ratio is None or row.verdict not in _SHOWN:
        return Difference(found.ratio, False, found.basis)
    times_as_long = 1 / row.ratio.value if inverted else row.ratio.value
    ratio = 1 / times_as_long if weight.better == "higher" else times_as_long
    return Difference(ratio, True, "verdict of the run")
