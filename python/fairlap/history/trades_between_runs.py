"""What the faster of two runs costs, such as memory: one sentence where both halves are shown.

By the intervals of `fairlap diff`, which are widened because the runs did not take turns.
"""

from __future__ import annotations

from collections.abc import Collection

from fairlap import verdict
from fairlap.history.between_runs import Matched, matched
from fairlap.race.run import Run
from fairlap.results.quantities.other_quantities import figure_of, metrics_of_processes
from fairlap.verdict import Change, Metric

_FEWEST_PROCESSES = 2


def trades_between(before: Run, after: Run, required: Collection[str] = ()) -> list[str]:
    """Write a sentence for each contestant that is faster in one of the runs and shown to need more there.

    All quantities that it may name share one 5 %: the keys of ``required`` ones, or else all that both runs have.
    """
    found = ((pair, _trade(pair, required)) for pair in matched(before, after))
    return [f"{pair.title} · {pair.old[0].conditions}: {text}" for pair, text in found if text]


def _trade(pair: Matched, required: Collection[str]) -> str:
    if pair.why_not_claimed():
        return ""
    times = pair.regression(*([pair.judged.figure_ns(each) for each in own] for own in (pair.old, pair.new)))
    if times.ratio is None or times.change not in (Change.FASTER, Change.SLOWER):
        return ""
    is_faster = times.change is Change.FASTER
    figures = _figures(pair, required)
    alpha = verdict.ERROR_RATE / (len(required) or len(figures) or 1)
    prices = []
    for metric, (then, now) in figures.items():
        cost = pair.regression(then, now, alpha=alpha)
        if cost.ratio is not None and cost.change is (Change.SLOWER if is_faster else Change.FASTER):
            prices.append((metric, cost.ratio if is_faster else 1 / cost.ratio))
    old, new = _names(pair)
    better, worse = (new, old) if is_faster else (old, new)
    ratio = times.ratio if is_faster else 1 / times.ratio
    return verdict.trade_text(better, worse, pair.judged.metric, ratio, prices)


def _figures(pair: Matched, required: Collection[str]) -> dict[Metric, tuple[list[float], list[float]]]:
    """Of each quantity but speed, those before and those after, where at least two processes of either have it."""
    found = {}
    for key, metric in metrics_of_processes(pair.work).items():
        if metric.is_speed or (required and key not in required):
            continue
        old, new = (
            [value for process in own if (value := figure_of(metric, process, pair.work))]
            for own in (pair.old, pair.new)
        )
        if min(len(old), len(new)) >= _FEWEST_PROCESSES:
            found[metric] = old, new
    return found


def _names(pair: Matched) -> tuple[str, str]:
    old, new = pair.old[0].contestant, pair.new[0].contestant
    return (old, new) if old != new else (f"{old} before", f"{new} after")
