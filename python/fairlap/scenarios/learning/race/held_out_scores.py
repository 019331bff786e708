"""The metrics of what a contestant learnt.

They are of its weights after the last epoch, by the float64 reference, on held-out items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairlap.data.labelled.labelled_set import LabelledSet
from fairlap.models.arrays import Labels
from fairlap.models.metrics.metric import IGNORED, Array, Output
from fairlap.models.spec import Spec
from fairlap.models.task_metrics import (
    NotFinite,
    Score,
    parts_of,
    require_installed,
    require_labels,
    scored_outputs,
    value_of,
)
from fairlap.race.equal_work.answers import OtherWork

CTC_SCORE = "ctc_cer"
"""What one less is the score of a model that learns by connectionist temporal classification."""
_OVER_PROCESSES = "each process learns from other batches, so the interval is over processes"


def require_scorable(metrics: Sequence[str], spec: Spec, found: LabelledSet) -> None:
    """Raise InvalidRequest for a metric that the labels of the held-out items do not fit."""
    items = len(found.held_labels)
    outputs = [Output(each.name, (items, *each.sized(items)[1:]), each.dtype) for each in spec.outputs]
    labels = metric_labels(spec, found.held_labels)
    for text in dict.fromkeys((*metrics, *([CTC_SCORE] if spec.loss == "ctc" else []))):
        require_installed(text)
        require_labels(text, labels, items, outputs)


def metric_labels(spec: Spec, labels: Labels) -> Labels:
    return spelt_labels(labels) if spec.loss == "ctc" else labels


def spelt_labels(labels: Labels) -> Labels:
    """Replace the blanks that fill up labels of frames by what metrics ignore."""
    return np.where(labels == 0, IGNORED, labels).astype(np.int32)


def held_out_scores(
    metrics: Sequence[str], spec: Spec, answers: Mapping[str, Array], labels: Labels
) -> dict[str, Score]:
    """Of one process. Raises OtherWork for answers that are not finite."""
    among = [each.name for each in spec.outputs]
    scores: dict[str, Score] = {}
    for text in metrics:
        scored = [np.asarray(answers[name]) for name in scored_outputs(text, among)]
        try:
            value = value_of(text, [parts_of(text, scored, metric_labels(spec, labels))])
        except NotFinite:
            raise OtherWork("its weights give answers that are not finite", "E_TRAINING") from None
        scores[text] = Score(value, None, None, "", len(labels), _OVER_PROCESSES)
    return scores
