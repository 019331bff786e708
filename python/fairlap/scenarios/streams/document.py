"""A load on servers that stream for programs: what ``fairlap load PROMPTS.jsonl --json`` prints."""

from __future__ import annotations

import msgspec

from fairlap import verdict
from fairlap.engine.measurement import Notice
from fairlap.printed_document import PrintedDocument
from fairlap.scenarios.callables.comparison_document import ComparedPair, printed_pair
from fairlap.scenarios.load.load_messages import LimitedBy
from fairlap.scenarios.streams.agreement import Agreement
from fairlap.scenarios.streams.asked import LoadShape
from fairlap.scenarios.streams.figures import StreamFigures
from fairlap.scenarios.streams.result import StreamRow, StreamsResult
from fairlap.scenarios.streams.servers import Api


class PrintedRow(msgspec.Struct, frozen=True, kw_only=True):
    """Of one server. ``not_ranked`` is None for one that is; texts are empty where they do not apply."""

    name: str
    model: str
    api: Api
    tokens_forced: bool
    tokens_counted_by: str
    certificates: str
    http_version: str
    alone_ns: float | None
    place: str
    judged: float | None  # in judged_unit, the median over blocks
    block_figures_ns: tuple[float | None, ...]
    limited_by: tuple[LimitedBy, ...]
    figures: StreamFigures | None
    agreement: Agreement | None
    not_ranked: Notice | None
    warnings: tuple[Notice, ...]


class StreamsDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.streams/1"):
    """Rows are sorted by rank, those that are not ranked last."""

    prompts: str
    tokens: int  # of a usual answer
    shape: LoadShape
    rate_per_s: float | None
    concurrency: int | None
    first_token_bound_s: float | None
    per_token_bound_s: float | None
    judged_by: str
    judged_unit: str
    rows: list[PrintedRow]
    comparisons: list[ComparedPair]
    blocks: int
    trial_s: float
    elapsed_s: float
    seed: int
    ended_early: str
    interrupted: bool
    why_no_verdict: str


def document_of(found: StreamsResult) -> StreamsDocument:
    asked = found.asked
    return StreamsDocument(
        prompts=asked.prompts_file,
        tokens=asked.tokens,
        shape=asked.shape,
        rate_per_s=asked.rate_per_s,
        concurrency=asked.concurrency,
        first_token_bound_s=asked.bounds.first_token_s,
        per_token_bound_s=asked.bounds.per_token_s,
        judged_by=found.judged_by,
        judged_unit="1/s" if found.metric.inverse else "ns",
        rows=[_printed(row, found) for row in found.rows],
        comparisons=[printed_pair(each) for each in found.comparisons],
        blocks=found.blocks,
        trial_s=found.trial_s,
        elapsed_s=found.elapsed_s,
        seed=found.seed,
        ended_early=found.ended_early,
        interrupted=found.interrupted,
        why_no_verdict=found.why_no_verdict,
    )


def _printed(row: StreamRow, found: StreamsResult) -> PrintedRow:
    standing: verdict.Standing | None = found.standing
    places = {each.contestant: each.label for each in standing.places} if standing else {}
    return PrintedRow(
        name=row.name,
        model=row.model,
        api=row.api,
        tokens_forced=row.tokens_forced,
        tokens_counted_by=row.tokens_counted_by,
        certificates=row.certificates,
        http_version=row.http_version,
        alone_ns=row.alone_ns,
        place=places.get(row.name, ""),
        judged=found.judged_value(row),
        block_figures_ns=row.block_figures_ns,
        limited_by=row.limited_by,
        figures=row.figures,
        agreement=row.agreement,
        not_ranked=None if row.why_not is None else Notice(row.why_not.code, row.why_not.why),
        warnings=row.warnings,
    )
