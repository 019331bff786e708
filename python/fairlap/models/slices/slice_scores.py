"""What a process found of slices of the data: the score on each, and how it differs from other contestants'."""

from __future__ import annotations

import msgspec

from fairlap.models.task_metrics import Score


class SliceChange(msgspec.Struct, frozen=True):
    """From another contestant to this one, on a slice and elsewhere: on all other items, or on the data as they are.

    The standard error is that of the change on the slice less the change elsewhere.
    """

    metric: str
    slice: str
    against: str  # the other contestant
    against_work: str  # the id of its work, which may be in another precision
    change: float | None
    elsewhere: float | None
    standard_error: float | None
    degrees: float
    method: str
    why_not: str = ""  # there is no standard error, or no change


class SliceScores(msgspec.Struct, frozen=True):
    """By metric and slice: a group of items, or a corruption with its severity. None where there is no such figure.

    Changes of corruptions are over their severities, and over all.
    """

    scores: dict[str, dict[str, Score | None]]
    changes: list[SliceChange] = []
