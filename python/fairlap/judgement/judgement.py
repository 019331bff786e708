"""The answer about one change, a versioned document: a decision, its reason by code, figures, and what to try next."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlap.judgement.judge_request import Quantity
from fairlap.printed_document import PrintedDocument
from fairlap.request.suite import LeftOut
from fairlap.verdict.gates.candidate import Decision

Reason = Literal[
    "faster",
    "tests_failed",
    "build_failed",
    "wrong_answers",
    "change_failed",
    "slower",
    "benchmark_slower",
    "not_faster_by_gain",
    "not_proven_faster",
    "too_few_blocks",
    "busy_machine",
    "not_comparable",
]

EXIT_STATUSES: dict[Decision, int] = {"keep": 0, "discard": 1, "undecided": 3}
"""2 is an error, as of every command."""


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class SpeedupInterval(msgspec.Struct, frozen=True):
    """Between which speedups the true one is; an end is null where too few blocks ran to bound it."""

    low: float | None
    high: float | None
    level: Annotated[float, _about("The chance that an end is wrong, both ends together.")]


class Next(msgspec.Struct, frozen=True):
    """What would decide it."""

    blocks: Annotated[
        int | None, _about("Blocks that a new try needs, if the speedup is as estimated; null where it is too small.")
    ] = None
    seconds: Annotated[float | None, _about("About how long these blocks take.")] = None
    advice: Annotated[str, _about("What to try, in words.")] = ""


class Regret(msgspec.Struct, frozen=True):
    """How much slower the kept code may be than the fastest change that was tried."""

    at_most: Annotated[float, _about("As a share of the fastest change's time; 0 where none can be faster.")]
    kept: Annotated[int, _about("Changes that were kept; without one, the kept code is the base.")]
    tried: Annotated[int, _about("Tries that this bounds.")]
    fastest: Annotated[int | None, _about("The try that may be faster by so much; null where none may.")]
    unbounded: Annotated[
        int,
        _about("Tries that ended too soon for a bound. Those discarded are not faster, wrongly in 2.5 % of them."),
    ]
    level: Annotated[float, _about("The chance that the bound is wrong.")]


class BenchmarkSpeedup(msgspec.Struct, frozen=True, kw_only=True):
    """Of one benchmark of a suite."""

    name: str
    speedup: float
    interval: Annotated[SpeedupInterval, _about("For all benchmarks together, at 95 %.")]
    max_slowdown: float
    slower: Annotated[bool, _about("Shown to be slower by more than its `max_slowdown`, which discards the change.")]
    speedups: Annotated[tuple[float, ...], _about("Of each block, in the order in which they ran.")]


class Judgement(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.judgement/1"):
    """The document of ``fairlap judge --json``, and what ``fairlap.judge`` returns."""

    decision: Decision
    exit_status: Annotated[int, _about("0 keep, 1 discard, 3 undecided.")]
    reason: Reason
    message: Annotated[str, _about("The reason in words.")]
    code: Annotated[str, _about("What went wrong, as in docs/reference/codes.md; empty where nothing did.")] = ""
    output: Annotated[str, _about("The end of what the tests or the build printed, where they failed.")] = ""
    quantity: Annotated[Quantity, _about("What decides; the reasons are about this: `faster` is less of it.")] = "wall"
    gain: Annotated[float, _about("A kept change is faster by more than this share.")] = 0.0
    speedup: Annotated[
        float | None, _about("The base's figure divided by the change's; null where nothing was compared.")
    ] = None
    interval: Annotated[SpeedupInterval | None, _about("For this change alone, at 95 %.")] = None
    interval_over_search: Annotated[
        SpeedupInterval | None, _about("For all tries of the ledger together; its lower end decides about keeping.")
    ] = None
    level: Annotated[float, _about("The chance of keeping this change if it is not faster by more than the gain.")] = (
        0.0
    )
    blocks: int = 0
    answers_compared: Annotated[
        bool | None,
        _about("Whether what both computed was compared, of a suite in every benchmark; null where nothing raced."),
    ] = None
    speedups: Annotated[tuple[float, ...], _about("Of each block, in the order in which they ran.")] = ()
    benchmarks: Annotated[
        tuple[BenchmarkSpeedup, ...], _about("Of a suite; `speedup` is then the geometric mean.")
    ] = ()
    trades: Annotated[
        tuple[str, ...], _about("What the faster side is shown to cost, such as memory; it decides nothing.")
    ] = ()
    left_out: Annotated[tuple[LeftOut, ...], _about("Benchmarks of the suite that did not race, and why.")] = ()
    ended_undecided: Annotated[
        bool, _about("The race ended by its budget or its last block, so that the test at the end counts, too.")
    ] = False
    e: Annotated[
        float | None, _about("Largest bet against the change being no faster; keeps it from 2 / level on.")
    ] = None
    p: Annotated[float | None, _about("One-sided, of the test at the end; keeps the change up to level / 2.")] = None
    spread: Annotated[float | None, _about("Standard deviation of the speedup between blocks, as a share.")] = None
    seconds: Annotated[float, _about("Duration of the race.")] = 0.0
    next: Next | None = None
    try_number: Annotated[int | None, _about("In the ledger.")] = None
    regret: Regret | None = None


def decided(decision: Decision, reason: Reason, message: str, **details: object) -> Judgement:
    found = {"decision": decision, "exit_status": EXIT_STATUSES[decision], "reason": reason, "message": message}
    return Judgement(**found, **details)  # type: ignore[arg-type]
