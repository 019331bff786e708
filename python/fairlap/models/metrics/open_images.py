"""The metric of the Open Images challenges: PASCAL VOC's of 2010 with groups of objects, by what people looked for.

Detections of classes that were not verified in an image are ignored. So are those that match no single object but lie
inside a group, except that the surest one in each group finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from fairlap.models.metrics.boxes import BOX, GROUP, OUTPUTS, by_image, require_boxes
from fairlap.models.metrics.metric import Array, Parts, TaskMetric, objects

_OVERLAP = 0.5  # of a detection with an object, as a share of both; with a group, as a share of the detection
_MOST_IMAGES = 2_000  # of which resamples take seconds
_RESAMPLES = 199


def _matches(boxes: Array, scores: Array, classes: Array, labels: Array) -> Parts:
    """Give each image's detections that count, as class, score and whether it is right; and the classes to find."""
    found, right = by_image(boxes, scores, classes, labels)
    counted = [_counted(given, rows) for given, rows in zip(found, right, strict=True)]
    return objects(counted), objects([rows[rows[:, 5] <= GROUP, 4] for rows in right])


def _counted(given: Array, rows: Array) -> Array:
    found = [np.zeros((0, 3))]
    for kind in np.unique(rows[:, 4]).tolist():
        own = given[given[:, 5] == kind]
        own = own[np.argsort(-own[:, 4], kind="stable")]
        of_class = rows[rows[:, 4] == kind]
        counts = _in_turn(own, of_class[of_class[:, 5] == BOX], of_class[of_class[:, 5] == GROUP])
        found.append(np.array([(kind, own[place, 4], hit) for place, hit in counts]).reshape(-1, 3))
    return np.concatenate(found)


def _in_turn(given: Array, single: Array, groups: Array) -> Iterator[tuple[int, bool]]:
    """Yield the places of detections that count, from the surest one, and whether each is right."""
    shared, inside = _shared(given, single), _shared(given, groups)
    sizes = _sizes(given)[:, None]
    overlaps = _shares(shared, sizes + single[:, 2] * single[:, 3] - shared)
    inside = _shares(inside, np.broadcast_to(sizes, inside.shape))
    taken, found_groups = set[int](), set[int]()
    for place in range(len(given)):
        best = int(overlaps[place].argmax()) if len(single) else -1
        if best >= 0 and overlaps[place, best] >= _OVERLAP and best not in taken:
            taken.add(best)
            yield place, True
            continue
        group = int(inside[place].argmax()) if len(groups) else -1
        if group < 0 or inside[place, group] < _OVERLAP:
            yield place, False
        elif group not in found_groups:
            found_groups.add(group)
            yield place, True


def _sizes(given: Array) -> Array:
    sizes: Array = np.maximum(given[:, 2] - given[:, 0], 0) * np.maximum(given[:, 3] - given[:, 1], 0)
    return sizes


def _shared(given: Array, rows: Array) -> Array:
    """Compute the area that each detection, by its corners, shares with each row, by its corner and its sides."""
    first = np.maximum(given[:, None, 0:2], rows[None, :, 0:2])
    last = np.minimum(given[:, None, 2:4], rows[None, :, 0:2] + rows[None, :, 2:4])
    shared: Array = np.maximum(last - first, 0).prod(axis=-1)
    return shared


def _shares(shared: Array, of: Array) -> Array:
    return np.divide(shared, of, out=np.zeros_like(shared), where=of > 0)


def _mean_average_precision(counted: Array, to_find: Array) -> float:
    """Average over the classes that have something to find."""
    rows, classes = np.concatenate([np.zeros((0, 3)), *counted]), np.concatenate([np.zeros(0), *to_find])
    kinds, totals = np.unique(classes, return_counts=True)
    if not len(kinds):
        return float("nan")
    rows = rows[np.argsort(-rows[:, 1], kind="stable")]
    each = [_average_precision(rows[rows[:, 0] == kind, 2], total) for kind, total in zip(kinds, totals, strict=True)]
    return float(np.mean(each))


def _average_precision(hits: Array, total: int) -> float:
    """Compute the area under the best precision at each recall or a higher one."""
    right = np.cumsum(hits)
    precision = right / np.arange(1, len(hits) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(best[hits > 0].sum() / total)


METRICS: Mapping[str, TaskMetric] = {
    "oi_map": TaskMetric("Open Images' mean average precision, at an overlap of 0.5", require_boxes, _matches,
                         _mean_average_precision, outputs=OUTPUTS, reads="open-images", best_is_1=True,
                         resamples=_RESAMPLES, most_resampled=_MOST_IMAGES),
}  # fmt: skip
