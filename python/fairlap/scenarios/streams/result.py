"""What a load on servers that stream found: a row for each, and the comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.request.fields.load import duration_text
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.load.load_messages import LimitedBy
from fairlap.scenarios.streams.agreement import Agreement
from fairlap.scenarios.streams.asked import StreamsAsked
from fairlap.scenarios.streams.figures import Percentiles, StreamFigures
from fairlap.scenarios.streams.servers import Api

NOT_RESTARTED = (
    "The servers were not restarted between blocks, and are not frozen while others have their turn: the verdict is "
    "about these servers as they run."
)


@dataclass(frozen=True)
class StreamRow:
    """One server. ``why_not``: why it is not ranked; its figures may be there all the same."""

    name: str
    model: str
    api: Api
    tokens_forced: bool
    tokens_counted_by: str
    certificates: str
    http_version: str
    alone_ns: float | None  # of an answer while nothing else is asked
    figures: StreamFigures | None  # of all blocks
    block_figures_ns: tuple[float | None, ...]
    limited_by: tuple[LimitedBy, ...]  # by block, of a search for the largest rate
    agreement: Agreement | None  # with the first of the contestants
    why_not: Unqualified | None
    warnings: tuple[Notice, ...]

    @property
    def judged_ns(self) -> float:
        """The median over blocks of what it is ranked by; infinite where there is none, which sorts last."""
        known = [each for each in self.block_figures_ns if each is not None]
        return float(np.median(known)) if known else math.inf


@dataclass(frozen=True)
class StreamsResult:
    """Rows are sorted by rank, those that are not ranked last."""

    asked: StreamsAsked
    rows: tuple[StreamRow, ...]
    comparisons: tuple[verdict.Comparison, ...]
    standing: verdict.Standing | None
    metric: verdict.Metric
    blocks: int
    trial_s: float
    elapsed_s: float
    seed: int
    ended_early: str
    interrupted: bool

    @property
    def judged_by(self) -> str:
        return self.metric.inverse or self.metric.name

    def judged_value(self, row: StreamRow) -> float | None:
        """In nanoseconds, or of a rate per second."""
        if not math.isfinite(row.judged_ns):
            return None
        return 1e9 / row.judged_ns if self.metric.inverse else row.judged_ns

    @property
    def why_no_verdict(self) -> str:
        if self.comparisons or self.interrupted:
            return ""
        ranked = sum(row.why_not is None for row in self.rows)
        if ranked < 2:
            return f"{quantity_text.count(ranked, 'server')} can be ranked; a comparison needs two"
        return f"{quantity_text.count(self.blocks, 'block')}; a comparison needs two in which each server has a figure"

    @property
    def text(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [self._setting]
        for row in self.rows:
            lines += self._lines_of(row, width)
        first = self.asked.baseline or (self.standing.places[0].contestant if self.standing else "")
        lines += [f"  {verdict.sentence(each)}" for each in self.comparisons if first in (each.a, each.b)]
        lines += [f"  {self.ended_early}"] if self.ended_early else []
        lines += [f"  ! no verdict: {self.why_no_verdict}"] if self.why_no_verdict else []
        return "\n".join([*lines, f"  {NOT_RESTARTED}"])

    @property
    def _setting(self) -> str:
        asked = self.asked
        bounds = ((asked.bounds.first_token_s, "first token"), (asked.bounds.per_token_s, "per token"))
        parts = [
            asked.prompts_file,
            *asked.texts,
            *(f"{what} within {duration_text(bound)}" for bound, what in bounds if bound is not None),
            f"{quantity_text.count(self.blocks, 'block')} of {quantity_text.seconds(self.trial_s)}",
            f"seed {self.seed}",
        ]
        return ", ".join(parts)

    def _lines_of(self, row: StreamRow, width: int) -> Iterable[str]:
        places = {each.contestant: each.label for each in self.standing.places} if self.standing else {}
        place = places.get(row.name, "-") if row.why_not is None else "-"
        relations = verdict.relations(self.standing, self.comparisons, row.name)
        yield f"  {place:>3} {row.name:<{width}}  {self._judged_text(row)}  {relations}".rstrip()
        indent = "      "
        if row.why_not is not None:
            yield f"{indent}! not ranked: {row.why_not.why} [{row.why_not.code}]"
        if row.figures is not None:
            for each in _figure_lines(row.figures):
                yield f"{indent}{each}"
        if row.agreement is not None and row.agreement.identical == row.agreement.prompts:
            answers = quantity_text.count(row.agreement.prompts, "answer")
            yield f"{indent}all of {answers} identical to those of {row.agreement.with_}"
        if row.certificates == "not verified":
            yield f"{indent}certificates not verified"
        for warning in row.warnings:
            yield f"{indent}! {warning.text} [{warning.code}]"

    def _judged_text(self, row: StreamRow) -> str:
        value = self.judged_value(row)
        if value is None:
            return f"no {self.judged_by}"
        shown = quantity_text.rate(value) if self.metric.inverse else quantity_text.duration(value)
        return f"{self.judged_by} {shown}"


def _figure_lines(found: StreamFigures) -> list[str]:
    times = [
        ("first token", found.first_token),
        ("per token", found.per_token),
        ("between tokens", found.between_tokens),
        ("whole answer", found.end_to_end),
    ]
    lines = [f"{what:<14}  {_percentiles_text(each)}" for what, each in times if each is not None]
    parts = [f"{found.answered:,} of {quantity_text.count(found.requests, 'request')} answered"]
    if found.tokens_per_s is not None:
        parts.append(f"{quantity_text.number(found.tokens_per_s)} tokens/s")
    if found.cached_tokens is not None and found.prompt_tokens:
        cached = quantity_text.share(found.cached_tokens / found.prompt_tokens)
        parts.append(f"{cached} of {found.prompt_tokens:,} prompt tokens cached")
    if found.tokens_per_s_per_user is not None:
        parts.append(f"{quantity_text.number(found.tokens_per_s_per_user)} tokens/s per user")
    if found.goodput_per_s is not None and found.good_share is not None:
        within = f"{quantity_text.share(found.good_share, 3)} within the bounds"
        parts.append(f"goodput {quantity_text.rate(found.goodput_per_s)} ({within})")
    return [*lines, ", ".join(parts)]


def _percentiles_text(found: Percentiles) -> str:
    shown = ((50, found.p50_ns), (90, found.p90_ns), (99, found.p99_ns))
    return ", ".join(f"p{share} {quantity_text.duration(each)}" for share, each in shown)
