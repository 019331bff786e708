"""The verdicts of a run compared with those of its repetition: which hold, which flip, and which stay undecided.

Both raced the same plan, so their works have the same ids, also on another machine. What is compared are verdicts, each
of contestants that took turns; times of two machines are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import msgspec

from fairlap import quantity_text, verdict
from fairlap.machine.differences import differences
from fairlap.printed_document import PrintedDocument
from fairlap.request.work import Conditions
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import WorkResult
from fairlap.verdict import Comparison, Verdict

Outcome = Literal["holds", "flips", "undecided"]
_FLIPS, _UNDECIDED = 1, 3  # exit statuses


class RecheckedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as long a contestant took as its baseline, then and here."""

    work_id: str
    work: str  # its title
    conditions: Conditions
    contestant: str
    baseline: str
    outcome: Outcome
    before: str  # the verdict
    after: str | None  # None where the two were not compared
    ratio_before: Estimate
    ratio_after: Estimate | None
    why: str  # empty where it holds


class Recheck(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.recheck/1"):
    of: str  # the run
    run: str  # its repetition; empty where that is not stored
    exit_status: int
    holds: int
    flips: int
    undecided: int
    verdicts: tuple[RecheckedVerdict, ...]
    differences: tuple[str, ...]  # of machine, versions, code, data and settings, which may explain what does not hold


def recheck(before: Results, after: Results, known: Sequence[str], run_id: str = "") -> Recheck:
    """``known`` are differences that were known before the repetition."""
    verdicts = tuple(_verdicts(before, after))
    holds, flips, undecided = (sum(each.outcome == kind for each in verdicts) for kind in get_args(Outcome))
    return Recheck(
        of=before.run_id,
        run=run_id,
        exit_status=_FLIPS if flips else _UNDECIDED if undecided or not verdicts else 0,
        holds=holds,
        flips=flips,
        undecided=undecided,
        verdicts=verdicts,
        differences=(*known, *_settings_that_differ(before, after)),
    )


def outcome_of(then: Comparison, now: Comparison | None, why_not: str = "") -> tuple[Outcome, str]:
    """Compare two verdicts, and say why one does not hold; ``why_not`` says why there is none now."""
    if then.verdict is Verdict.INCONCLUSIVE:
        return "undecided", "it was inconclusive then"
    if now is None:
        return "undecided", why_not or "the two were not compared"
    if now.verdict is Verdict.INCONCLUSIVE:
        needed = verdict.needed_blocks(now)
        enough = f"; about {quantity_text.count(needed, 'block')} would decide it" if needed else ""
        return "undecided", f"it is inconclusive here after {quantity_text.count(now.blocks, 'block')}{enough}"
    if now.verdict is then.verdict:
        return "holds", ""
    apart = then.interval.low > now.interval.high or then.interval.high < now.interval.low
    if not apart and Verdict.EQUIVALENT in (then.verdict, now.verdict):
        return "undecided", "both verdicts are possible, as their intervals have values in common"
    return "flips", f"it is {now.verdict.value} here, and was {then.verdict.value}"


def _verdicts(before: Results, after: Results) -> Iterator[RecheckedVerdict]:
    now_of = {(each.work.id, each.conditions): each for each in after.work_results}
    for then in before.work_results:
        title, now = before.run.plan.title_of(then.work), now_of.get((then.work.id, then.conditions))
        for _, row in then.with_rows():
            compared = then.comparison(row.contestant, row.baseline) if row.baseline else None
            if compared is not None:
                yield _verdict(title, row, compared, then, now)


def _verdict(title: str, row: Row, compared: Comparison, then: WorkResult, now: WorkResult | None) -> RecheckedVerdict:
    baseline = row.baseline or ""
    again = None if now is None else now.comparison(row.contestant, baseline)
    outcome, why = outcome_of(compared, again, _why_not_compared(now, (row.contestant, baseline)))
    return RecheckedVerdict(
        work_id=then.work.id,
        work=title,
        conditions=then.conditions,
        contestant=row.contestant,
        baseline=baseline,
        outcome=outcome,
        before=compared.verdict.value,
        after=None if again is None else again.verdict.value,
        ratio_before=_estimate(compared),
        ratio_after=None if again is None else _estimate(again),
        why=why,
    )


def _estimate(compared: Comparison) -> Estimate:
    return Estimate.bounded(compared.ratio, compared.interval.low, compared.interval.high)


def _why_not_compared(now: WorkResult | None, pair: tuple[str, str]) -> str:
    if now is None:
        return "it did not run here"
    own = [each for each in now.contestants if each.contestant in pair and not each.ranked]
    return "; ".join(f"{each.contestant} {each.trouble_with_code}" for each in own) or now.why_no_verdict


def _settings_that_differ(before: Results, after: Results) -> list[str]:
    """List settings in force, threads among them, that a contestant had otherwise in both runs."""
    rows = {(each.work_id, each.conditions, each.contestant): each.settings for each in before.rows}
    found: dict[str, None] = {}
    for row in after.rows:
        then = rows.get((row.work_id, row.conditions, row.contestant), {})
        both = then.keys() & row.settings.keys()
        changed = differences(*({name: each[name] for name in both} for each in (then, row.settings)))
        found |= dict.fromkeys(f"{row.contestant}: {each}" for each in changed)
    return list(found)


def recheck_table(found: Recheck) -> list[tuple[str, ...]]:
    """Write the table, its heads first."""
    heads = ("work", "contestant", "against", "then", "here", "outcome")
    return [heads, *(_cells(each) for each in found.verdicts)]


def _cells(each: RecheckedVerdict) -> tuple[str, ...]:
    then, here = (
        "not compared" if word is None or ratio is None else f"{word} {_ratio(ratio)}"
        for word, ratio in ((each.before, each.ratio_before), (each.after, each.ratio_after))
    )
    outcome = each.outcome.replace("_", " ")
    why = f": {each.why}" if each.why else ""
    work = f"{each.work} · {each.conditions}"
    return work, each.contestant, each.baseline, then, here, f"{outcome}{why}"


def _ratio(found: Estimate) -> str:
    return quantity_text.ratio_interval(found.value, found.low, found.high)
