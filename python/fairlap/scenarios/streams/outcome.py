"""What the blocks so far show: who may be ranked, and how they compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.scenarios.callables.judging import Judge
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.streams.agreement import (
    agreement,
    answers_by_prompt,
    warnings_of,
    warnings_of_agreement,
    why_unequal,
)
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.figures import StreamFigures, figures_of
from fairlap.scenarios.streams.prefix_cache import warnings_of_cache
from fairlap.scenarios.streams.result import StreamRow, StreamsResult

MARGIN = 0.02
NO_RATE, BUSY_CLIENT = "E_NO_RATE", "W_BUSY_CLIENT"
_BUSY_SHARE = 0.7  # of a core; the interpreter lock lets a process compute on one
_LATE_SHARE, _LATE_NS = 0.1, 1e6

_TIME_OF_AN_ANSWER = verdict.Metric("time of an answer", "ns")
_TIME_PER_TOKEN = verdict.Metric("time per token", "ns", inverse="tokens per second")


class Outcome:
    """Computed once, of all blocks that are complete when it is made."""

    def __init__(self, asked: StreamsAsked, contestants: Sequence[Contestant]) -> None:
        self._asked = asked
        self._contestants = [each for each in contestants if each.examined is not None]
        self._judge = Judge(verdict.ERROR_RATE, MARGIN, asked.blocks is None, asked.only_winner)
        self._figures = {each.server.name: figures_of(each.loads, asked.bounds) for each in self._contestants}
        self._most_per_answer = max((_per_answer(each) for each in self._contestants), default=0.0)
        self._why_not = {each.server.name: self._why_not_ranked(each) for each in self._contestants}

    @property
    def ranked(self) -> int:
        return sum(each is None for each in self._why_not.values())

    @property
    def is_decided(self) -> bool:
        return self._table is not None and self._judge.is_decided(self._table)

    def result(
        self, *, trial_s: float, elapsed_s: float, seed: int, ended_early: str, interrupted: bool
    ) -> StreamsResult:
        table = self._table
        comparisons = () if table is None else self._judge.comparisons(table)
        standing = None if table is None else verdict.standing(table, comparisons)
        rows = [self._row(each) for each in self._contestants]

        def position(row: StreamRow) -> tuple[bool, int, float]:
            return row.why_not is not None, 0 if standing is None else standing.position(row.name), row.judged_ns

        blocks = max((len(each.judged_ns) for each in self._contestants), default=0)
        return StreamsResult(
            asked=self._asked,
            rows=tuple(sorted(rows, key=position)),
            comparisons=comparisons,
            standing=standing,
            metric=self._metric,
            blocks=blocks,
            trial_s=trial_s,
            elapsed_s=elapsed_s,
            seed=seed,
            ended_early=f"interrupted after {quantity_text.count(blocks, 'block')}" if interrupted else ended_early,
            interrupted=interrupted,
        )

    @property
    def _metric(self) -> verdict.Metric:
        if self._asked.searches:
            return verdict.TIME_PER_REQUEST
        waits = self._asked.concurrency is not None and not self._asked.think_s
        return _TIME_PER_TOKEN if waits else _TIME_OF_AN_ANSWER

    @cached_property
    def _table(self) -> verdict.BlockTable | None:
        """Of those that may be ranked, and blocks in which each of them has a figure."""
        judged = [each for each in self._contestants if self._why_not[each.server.name] is None]
        if len(judged) < 2:
            return None
        values = np.array([each.judged_ns for each in judged])
        whole = values[:, np.isfinite(values).all(axis=0)]
        if whole.shape[1] < 2:
            return None
        return verdict.block_table(
            {each.server.name: verdict.Figures("wall_ns", row) for each, row in zip(judged, whole, strict=True)},
            metric=self._metric,
            workload=self._asked.prompts_file,
            evidence="of running servers",
        )

    def _why_not_ranked(self, contestant: Contestant) -> Unqualified | None:
        if contestant.why_not is not None:
            return contestant.why_not
        if self._asked.searches and contestant.searched and not np.isfinite(contestant.judged_ns).any():
            by_budget = {each.limited_by for each in contestant.searched} == {"budget"}
            why = "the budget ended every search" if by_budget else "no rate that was tried meets the bounds"
            return Unqualified(why, NO_RATE)
        own = self._figures[contestant.server.name]
        least = min(self._most_per_answer, _asked_per_answer(contestant)) if _per_answer(contestant) else 0.0
        return why_unequal(own, contestant.answers, least) if own.requests else None

    def _row(self, contestant: Contestant) -> StreamRow:
        server, examined, asked = contestant.server, contestant.found, self._asked
        figures = self._figures[server.name]
        first = next((each for each in self._contestants if each.loads), contestant)
        agrees = None
        if contestant is not first:
            own, other = answers_by_prompt(contestant.loads), answers_by_prompt(first.loads)
            agrees = agreement(own, other, first.server.name)
        counted = sorted({each.counted_by for each in contestant.answers if each.failure is None})
        return StreamRow(
            name=server.name,
            model=server.model,
            api=server.api,
            tokens_forced=examined.fields == "forced",
            tokens_counted_by=" and ".join(counted),
            certificates=asked.certificates.text if server.address.scheme == "https" else "none, by http",
            http_version=examined.http_version,
            alone_ns=1e9 * examined.alone_s if examined.answers else None,
            figures=figures if figures.requests else None,
            block_figures_ns=tuple(each if math.isfinite(each) else None for each in contestant.judged_ns),
            limited_by=tuple(each.limited_by for each in contestant.searched),
            agreement=agrees,
            why_not=self._why_not[server.name],
            warnings=(
                *examined.warnings,
                *warnings_of(figures, contestant.answers),
                *warnings_of_cache(figures, asked),
                *warnings_of_agreement(agrees),
                *_busy_client(figures),
            ),
        )


def _per_answer(contestant: Contestant) -> float:
    """Tokens of an answer, on average; 0 where the server does not count them."""
    whole = [each for each in contestant.answers if each.failure is None]
    if not whole or any(each.counted_by == "events" for each in whole):
        return 0.0
    return sum(each.tokens for each in whole) / len(whole)


def _asked_per_answer(contestant: Contestant) -> float:
    return float(np.mean([each.asked_tokens for each in contestant.answers if each.failure is None]))


def _busy_client(figures: StreamFigures) -> list[Notice]:
    first_ns = figures.first_token.p50_ns if figures.first_token else math.inf
    late_ns = figures.lateness_p99_ns or 0.0
    reasons = []
    if figures.client_share > _BUSY_SHARE:
        reasons.append(f"used {quantity_text.share(figures.client_share)} of a core")
    if late_ns > max(_LATE_SHARE * first_ns, _LATE_NS):
        reasons.append(f"began one request in a hundred {quantity_text.duration(late_ns)} late or later")
    return [Notice(BUSY_CLIENT, f"the client {' and '.join(reasons)}, which is part of the times")] if reasons else []
