"""How right the answers are."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fairlap.models.task_metrics import Score
from fairlap.results.column_definitions.about import Gauge, about
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.column_definitions.resources import Resources
from fairlap.results.slices.slice_score import CorruptedScore, GroupedScore

_accuracy = partial(about, group="accuracy")


class Answers(Resources, frozen=True, kw_only=True):
    answers: Annotated[
        str,
        _accuracy(
            "What they agree with: `agree with the reference`, with `my_kernels:reference`, or with `each other`; or "
            "`answers not compared`. Empty where the contestant gave none."
        ),
    ]
    error_relative: Annotated[
        float | None,
        _accuracy(
            "Worst distance from the reference, relative.",
            gauge=Gauge("error_relative_ratio", "", "Numerical error of the answer, relative."),
        ),
    ]
    error_absolute: Annotated[float | None, _accuracy("Worst distance of any one element.")]
    error_drop: Annotated[
        float | None, _accuracy("How much larger its relative error is than the smallest one in fp32 on the same work.")
    ]
    accuracy_drop: Annotated[
        float | None, _accuracy("How much lower its score is than the best one in fp32 on the same work.")
    ]
    zero_weights: Annotated[float | None, _accuracy("Share of the model's weights that are 0, as pruning leaves them.")]
    accuracy: Annotated[
        Estimate | None,
        _accuracy(
            "The metric top1: share of right answers, with its interval over the items; of training, over processes.",
            unit="share",
        ),
    ]
    scores: Annotated[
        dict[str, Score],
        _accuracy(
            "Every metric of the answers to the user's data, or of what was learnt, with its interval and how that was "
            "found."
        ),
    ]
    group_scores: Annotated[
        dict[str, GroupedScore],
        _accuracy(
            "By metric, its score on each group of items, and whether the group changes more than the others from the "
            "contestant that it is compared with."
        ),
    ]
    corrupted_scores: Annotated[
        dict[str, CorruptedScore],
        _accuracy(
            "By metric, its score on corrupted data, and whether that falls further than on the data as they are from "
            "the contestant that it is compared with."
        ),
    ]
