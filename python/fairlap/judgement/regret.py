"""How much slower the code that a search kept may be than the fastest change that it tried.

The lower ends of the kept changes hold together at the levels that they spent, and a chain of them leads to today's
code. The upper ends of the others hold together at the same rate, which they share equally. A change that was soon
found to be slower has too few blocks for such an end: it is counted as unbounded.
"""

from __future__ import annotations

import math

from fairlap.judgement.judgement import Regret
from fairlap.judgement.ledger import ERROR_RATE, Ledger, Try
from fairlap.verdict import highest_speedup, lowest_speedup

_OF_BOTH_ENDS = 2 * ERROR_RATE


def regret(ledger: Ledger) -> Regret | None:
    """None where nothing was compared. What answered wrong, or failed, is no code that one could have kept."""
    compared = [each for each in ledger.tries if _may_be_kept(each)]
    if not compared:
        return None
    since = _least_speedups_since(ledger)
    rivals = [each for each in compared if each.outcome != "keep"]
    bounds = {each.number: _times_as_long(each, since, ERROR_RATE / len(rivals)) for each in rivals}
    known = {number: bound for number, bound in bounds.items() if math.isfinite(bound)}
    worst = max(known, key=known.__getitem__, default=None)
    at_most = max(0.0, known[worst] - 1) if worst is not None else 0.0
    kept = len(compared) - len(rivals)
    unbounded = len(rivals) - len(known)
    return Regret(at_most, kept, kept + len(known), worst if at_most else None, unbounded, _OF_BOTH_ENDS)


def _may_be_kept(each: Try) -> bool:
    """Leave out confirmations, and changes that one could not have kept: one benchmark of a suite became too slow."""
    return bool(each.speedups) and not each.confirms and each.reason != "benchmark_slower"


def _times_as_long(rival: Try, since: dict[str, float], level: float) -> float:
    """Compute how many times as long today's code may take; infinite where nothing bounds it."""
    speedup = since.get(rival.base.sha256)  # None where no chain leads from what the rival was raced against
    if not speedup:
        return math.inf
    return highest_speedup(rival.log_speedups, level, ended=rival.ended_undecided) / speedup


def _least_speedups_since(ledger: Ledger) -> dict[str, float]:
    """Of today's code over each code that it builds on, at least; by hash."""
    kept = [each for each in ledger.tries if each.outcome == "keep" and not each.confirms]
    if not kept:
        return {each.base.sha256: 1.0 for each in ledger.tries[-1:]}
    found = {kept[-1].change.sha256: 1.0}
    for each in reversed(kept):
        if each.change.sha256 in found:
            least = lowest_speedup(each.log_speedups, each.level, ended=each.ended_undecided)
            found.setdefault(each.base.sha256, found[each.change.sha256] * least)
    return found
