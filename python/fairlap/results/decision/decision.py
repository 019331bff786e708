"""The decision about a run, as commands print it and JSON documents hold it."""

from __future__ import annotations

import msgspec

from fairlap.results.decision.requirements import Status


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant on one work."""

    contestant: str
    work: str
    run: str = ""  # where several runs are side by side
    qualifies: Status
    reasons: dict[str, str]  # by requirement, why it is not met or unknown


class MeanOverWorks(msgspec.Struct, frozen=True, kw_only=True):
    """Geometric mean of the ratios of what contestants are ranked by, with its 95 % interval. A summary, no verdict."""

    contestant: str
    baseline: str
    ratio: float
    low: float
    high: float
    works: int
    blocks: int
    inverse: str = ""  # what the ratio is of: the baseline's largest rate over the contestant's; empty: of times


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    requirements: list[str] = []
    judged: list[Judged] = []
    means: list[MeanOverWorks] = []
    use: str = ""
    weights: dict[str, float] = {}
    recommended: list[str] = []
    sentences: list[str] = []
