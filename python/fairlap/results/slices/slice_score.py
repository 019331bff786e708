"""A score on a slice of the data, and whether it changes more there than elsewhere; part of the row."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlap.models.task_metrics import Score
from fairlap.results.column_definitions.estimate import Estimate

SliceOutcome = Literal["better", "worse", "equivalent", "inconclusive"]


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class SliceScore(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, _about("Of the slice.")]
    score: Annotated[Score | None, _about("Null where its items have no such figure.")] = None
    change: Annotated[float | None, _about("Its score less that of the contestant that it is compared with.")] = None
    elsewhere: Annotated[float | None, _about("The same on all other items, or on the data as they are.")] = None
    apart: Annotated[Estimate | None, _about("The change less the one elsewhere, with its interval.")] = None
    level: Annotated[float | None, _about("The chance that this interval misses the truth.")] = None
    p_adjusted: Annotated[float | None, _about("By Holm over all slices and contestants of the metric.")] = None
    outcome: Annotated[SliceOutcome | None, _about("Of the slice, by comparison with the change elsewhere.")] = None
    margin: Annotated[float | None, _about("Differences of changes within it are equivalent.")] = None
    detectable: Annotated[float | None, _about("The smallest difference of changes detectable at 80 % power.")] = None
    method: str = ""
    why_not: Annotated[str, _about("Why there is no outcome.")] = ""


class CorruptionScore(msgspec.Struct, frozen=True, kw_only=True):
    by_severity: Annotated[dict[str, Score | None], _about("Null where the items have no such figure.")]
    mean: Annotated[float | None, _about("Of its severities.")]
    corruption_error: Annotated[
        float | None, _about("Its errors over all severities, divided by those of the contestant it is compared with.")
    ]
    slice: Annotated[SliceScore, _about("Whether the score falls further than on the data as they are.")]


class CorruptedScore(msgspec.Struct, frozen=True, kw_only=True):
    against: Annotated[str, _about("The contestant that changes are from; empty for that one itself.")]
    mean: Annotated[float | None, _about("Of all corruptions, each the mean of its severities.")]
    mean_corruption_error: Annotated[
        float | None, _about("The mean of the corruption errors; null where there is no error to divide by.")
    ]
    corruptions: dict[str, CorruptionScore]
    all: Annotated[
        SliceScore, _about("Whether the mean over corruptions falls further than the score on the data as they are.")
    ]


class GroupedScore(msgspec.Struct, frozen=True, kw_only=True):
    against: Annotated[str, _about("The contestant that changes are from; empty for that one itself.")]
    largest_difference: Annotated[float | None, _about("The largest score of a group less the smallest one.")]
    groups: list[SliceScore]
