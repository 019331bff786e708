"""What both files hold: the median of each process, in seconds, of each contestant on each work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.request.work_title import work_title
from fairlap.results.results import Results


@dataclass(frozen=True)
class ProcessMedians:
    """Under the conditions of the verdict: a name has one figure in these files."""

    work: str
    contestant: str
    seconds: tuple[float, ...]


def process_medians(results: Results) -> Iterator[ProcessMedians]:
    plan = results.run.plan
    for each in results.work_results:
        if each.conditions != plan.headline:
            continue
        title = work_title(each.work.label, plan.data, (name.framework for name in plan.contestants))
        for result in each.contestants:
            if result.ranked:
                yield ProcessMedians(title, result.contestant, tuple(p.headline_ns / 1e9 for p in result.finished))


def quantiles(seconds: Sequence[float], *shares: float) -> list[float]:
    return [float(each) for each in np.quantile(seconds, shares)]


def commit_of(results: Results) -> str:
    return results.run.machine.get("git revision", "")
