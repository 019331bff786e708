"""The answer of a search, a versioned document: the commit or release, the ratio across its step, and all tries."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlap.judgement.judge_request import SearchedQuantity
from fairlap.printed_document import PrintedDocument

Outcome = Literal["found", "no_step", "several_suspects", "undecided"]
EXIT_STATUSES: dict[Outcome, int] = {"found": 0, "no_step": 1, "several_suspects": 3, "undecided": 3}
"""2 is an error, as of every command."""


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class CommitOf(msgspec.Struct, frozen=True):
    """A commit, or a release, which has a version alone."""

    commit: Annotated[str, _about("Its whole hash; empty for a release.")]
    subject: str
    author_date: Annotated[str, _about("ISO 8601; empty for a release.")]
    merges: Annotated[bool, _about("It is a merge; what it merged counts as this commit.")] = False
    version: Annotated[str, _about("Of a release; empty for a commit.")] = ""


class Ratio(msgspec.Struct, frozen=True):
    """The later commit's figure divided by the earlier one's: above 1 it is worse."""

    value: float
    low: Annotated[float | None, _about("Null where too few blocks ran to bound it.")]
    high: float | None
    level: Annotated[float, _about("The chance that the interval is wrong.")]
    blocks: int


class ChangedPackage(msgspec.Struct, frozen=True):
    """A package that is not the same in the environments of the release and the one before it."""

    name: str
    before: Annotated[str | None, _about("Its version; null where it is not installed.")]
    after: str | None


class AnotherStep(msgspec.Struct, frozen=True):
    """What the step does not explain of the difference of both ends."""

    ratio: float
    good: Annotated[str, _about("It is between this commit, or version, and `bad`.")]
    bad: str


class TriedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit or release that was raced against the good end, or skipped."""

    position: Annotated[int, _about("1 for the first commit after the good end.")]
    commit: str
    subject: str
    version: str = ""
    ratio: Annotated[float | None, _about("Of its figure to the good end's; null where it was skipped.")] = None
    low: float | None = None
    high: float | None = None
    blocks: int = 0
    probability: Annotated[float, _about("That the step is at this commit.")] = 0.0
    reason: Annotated[str, _about("Why it was skipped.")] = ""
    code: str = ""


class Bisection(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.bisection/1"):
    """The document of ``fairlap bisect --json``."""

    outcome: Outcome
    exit_status: Annotated[int, _about("0 found, 1 no step, 3 several suspects or undecided.")]
    message: str
    code: str = ""
    quantity: SearchedQuantity
    package: Annotated[str, _about("Whose releases were searched; empty where it was commits.")] = ""
    good: CommitOf
    bad: CommitOf
    commits: Annotated[
        int, _about("Commits along first parents, or releases, from the first one after the good end to the bad end.")
    ]
    commit: Annotated[
        CommitOf | None, _about("The commit or release that made it worse; null where none was found.")
    ] = None
    suspects: Annotated[tuple[CommitOf, ...], _about("Hold the step with `probability`; one where it was found.")] = ()
    probability: float = 0.0
    sure: Annotated[float, _about("The probability that was asked for.")]
    step: Annotated[Ratio | None, _about("Of it to its parent, or to the version before, raced at the end.")] = None
    ends: Annotated[Ratio | None, _about("Of the bad end to the good end.")] = None
    changed: Annotated[tuple[ChangedPackage, ...], _about("Across a step of releases, the release itself first.")] = ()
    next: Annotated[tuple[str, ...], _about("Commands that name the operators that became slower, in this order.")] = ()
    another_step: AnotherStep | None = None
    tried: tuple[TriedCommit, ...] = ()
    races: int = 0
    blocks: int = 0
    seconds: Annotated[float, _about("Of all races together, also before an interruption.")] = 0.0
