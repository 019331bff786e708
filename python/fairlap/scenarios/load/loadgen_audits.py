"""Two audits of MLPerf: that a contestant keeps no answers (TEST04), and TEST01.

TEST01 checks that it answers as well while it is timed as while its accuracy is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from statistics import median
from typing import Literal

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.scenarios.load.loadgen import run_loadgen
from fairlap.scenarios.load.loadgen_logs import LoggedAnswer
from fairlap.scenarios.load.loadgen_messages import LoadGenFailed, LoadGenResult, LoadGenRun
from fairlap.scenarios.load.system_under_test import Issue, Serve
from fairlap.verdict.exact_tests.signed_rank import sign_interval

PAIRS = 10  # an honest contestant is above any factor in all of them with a chance of at most 2 ** -10
_LEVEL = 0.01  # of the interval, which reaches from the smallest to the largest ratio
_FEWEST_QUERIES = 4

LARGEST_SPEED_UP = 1.5
"""A contestant whose speed-up is above this in all pairs keeps answers. MLPerf allows 1.1, of runs of ten minutes; but
an input that stays in the processor's caches makes an honest call faster too."""

MLPERF_LARGEST_SPEED_UP = 1.1


class RepeatedItem(msgspec.Struct, frozen=True):
    """How much faster a contestant is when it is asked about one item over and over."""

    ratio: float  # the median over pairs
    low: float  # of the interval with at least 99 % confidence
    high: float
    pairs: int
    queries: int  # of each run

    @property
    def keeps_answers(self) -> bool:
        return self.low > LARGEST_SPEED_UP

    @property
    def is_within_mlperf(self) -> bool:
        return self.ratio <= MLPERF_LARGEST_SPEED_UP


def audit_repeated_item(
    logs: str,
    items: int,
    issue: Issue,
    *,
    scenario: Literal["single-stream", "offline"] = "single-stream",
    seed: int = 0,
) -> RepeatedItem:
    """Pairs of runs, in alternating order: one asks about each of its items once, the other about one item as often.

    No item may have been asked about before, and no two runs share one, or kept answers would serve both kinds of runs.
    """
    each = items // PAIRS - 1
    if each < _FEWEST_QUERIES:
        raise InvalidRequest(f"this audit needs at least {PAIRS * (_FEWEST_QUERIES + 1)} unseen items (got {items})")
    base = LoadGenRun(scenario, logs, least_s=0.0, least_queries=each)
    logs_of_ratios: list[float] = []
    for pair in range(PAIRS):
        first = pair * (each + 1)
        runs = [
            (msgspec.structs.replace(base, each_item_once=True, seed=seed + pair), first, each),
            (msgspec.structs.replace(base, same_item=True, seed=seed + pair), first + each, 1),
        ]
        turns = runs if pair % 2 == 0 else runs[::-1]
        speeds = {run.same_item: _speed(run_loadgen(run, count, _from(issue, start))) for run, start, count in turns}
        logs_of_ratios.append(log(speeds[True] / speeds[False]))
    low, high = sign_interval(np.array(logs_of_ratios), _LEVEL)
    return RepeatedItem(exp(median(logs_of_ratios)), exp(low), exp(high), PAIRS, each)


def _from(issue: Issue, first: int) -> Issue:
    """Renumber the same contestant's items from this one."""

    def shifted(serve: Serve) -> Serve:
        return lambda items: serve([first + item for item in items])

    return replace(issue, serve=[shifted(serve) for serve in issue.serve])


def _speed(result: LoadGenResult) -> float:
    speed = result.figure if result.scenario == "offline" else 1 / result.latencies_s["50"]
    if speed is None:
        raise LoadGenFailed("LoadGen reported no rate for a run of the audit; run it again, for longer")
    return speed


class AnswersWhileTimed(msgspec.Struct, frozen=True):
    """Answers that were logged while the contestant was timed, compared with those of a run for accuracy."""

    compared: int
    unknown: int  # items that the run for accuracy did not answer
    largest_difference: float  # of any value, relative to the largest value of its output


def audit_answers_while_timed(timed: Sequence[LoggedAnswer], accuracy: Sequence[LoggedAnswer]) -> AnswersWhileTimed:
    """Compute the difference, which the caller judges: frameworks may round another way in another batch."""
    known = {answer.item: answer.outputs for answer in accuracy}
    differences = [0.0]
    unknown = 0
    for answer in timed:
        if answer.item not in known:
            unknown += 1
            continue
        for name, expected in known[answer.item].items():
            largest = float(np.abs(expected).max(initial=0.0)) or 1.0
            difference = float(np.abs(answer.outputs[name] - expected).max(initial=0.0)) / largest
            differences.append(difference if np.isfinite(difference) else np.inf)
    return AnswersWhileTimed(len(timed) - unknown, unknown, max(differences))
