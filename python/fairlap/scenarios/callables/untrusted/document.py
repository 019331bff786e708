"""A comparison of callables that are not trusted, for programs: ``fairlap time --untrusted --json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.printed_document import PrintedDocument
from fairlap.scenarios.callables.comparison_document import ComparedPair, PrintedFigure, printed_pair
from fairlap.scenarios.callables.untrusted.result import Exclusion

if TYPE_CHECKING:
    from fairlap.scenarios.callables.untrusted.result import UntrustedComparison, UntrustedRow


class JudgedCallable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    median_ns: float
    figure: PrintedFigure
    answers_checked: int
    warnings: tuple[Notice, ...]
    block_ns: tuple[float, ...] | msgspec.UnsetType = msgspec.UNSET  # with --raw


class UntrustedDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.untrusted/1"):
    """Rows are sorted by rank, then by time; texts are empty where they do not apply."""

    rows: list[JudgedCallable]
    comparisons: list[ComparedPair]
    places: dict[str, str]
    excluded: dict[str, Exclusion]
    floor_ns: float | None  # null where no block ran, as the ring's
    ring_ns: float | None
    floor_subtracted: bool
    calls_per_sample: int
    blocks: int
    elapsed_s: float
    seed: int
    device: str
    ended_early: str
    why_no_verdict: str
    interrupted: bool


def untrusted_document(found: UntrustedComparison, *, raw: bool) -> UntrustedDocument:
    return UntrustedDocument(
        rows=[_row(each, raw) for each in found.rows],
        comparisons=[printed_pair(each) for each in found.comparisons],
        places=found.places,
        excluded=dict(found.excluded),
        floor_ns=found.floor_ns,
        ring_ns=found.ring_ns,
        floor_subtracted=found.floor_subtracted,
        calls_per_sample=found.calls_per_sample,
        blocks=found.blocks,
        elapsed_s=found.elapsed_s,
        seed=found.seed,
        device=found.device,
        ended_early=found.ended_early,
        why_no_verdict=found.why_no_verdict,
        interrupted=found.interrupted,
    )


def _row(row: UntrustedRow, raw: bool) -> JudgedCallable:
    figure = row.figure
    return JudgedCallable(
        name=row.name,
        median_ns=row.median_ns,
        figure=PrintedFigure(figure.value, figure.low, figure.high),
        answers_checked=row.answers_checked,
        warnings=row.warnings,
        block_ns=row.block_ns if raw else msgspec.UNSET,
    )
