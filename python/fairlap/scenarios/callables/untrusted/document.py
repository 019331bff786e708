"""A comparison of callables that are not trusted, for programs: ``fairlap time --untrusted --json``."""

from __future__ import annotations

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.printed_document import PrintedDocument
from fairlap.scenarios.callables.comparison_document import ComparedPair, PrintedFigure
from fairlap.scenarios.callables.untrusted.exclusion import Exclusion


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
