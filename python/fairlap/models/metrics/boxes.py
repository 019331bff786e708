"""The metrics of object detection: boxes, scores and classes against those of COCO, by pycocotools, or of Open Images.

An item is an image, in the order of the file. Its labels are rows of left, top, width, height, category and kind: one
object, a crowd or group, or a category that was looked for. Rows of NaN fill up images that have fewer than others.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from fairlap.models.metrics.metric import Array, Output, Package, Parts, TaskMetric, objects, refuse

_COLUMNS = 6
BOX, GROUP, VERIFIED = 0, 1, 2  # kinds of rows
OUTPUTS = ("boxes", "scores", "classes")


class _Image(msgspec.Struct):
    id: int | str


class _Annotation(msgspec.Struct):
    image_id: int | str
    category_id: int
    bbox: tuple[float, float, float, float]  # left, top, width, height
    iscrowd: int = 0


class _File(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation]


def labels_of_annotations(content: bytes) -> Array:
    """Read the labels; raise ValueError, in one line, for what is not an annotation file of boxes."""
    found = msgspec.json.decode(content, type=_File)
    places = {image.id: place for place, image in enumerate(found.images)}
    if len(places) < len(found.images):
        raise ValueError("two images have the same id")
    rows: list[list[tuple[float, ...]]] = [[] for _ in found.images]
    for each in found.annotations:
        if each.image_id not in places:
            raise ValueError(f"an annotation is of image {each.image_id!r}, which is not among the images")
        if each.category_id < 0:
            raise ValueError(f"a category must be 0 or more (got {each.category_id})")
        rows[places[each.image_id]].append((*each.bbox, each.category_id, bool(each.iscrowd)))
    if all(each.iscrowd for each in found.annotations):
        raise ValueError("no annotation is of a single object")
    return padded_rows(rows)


def padded_rows(rows: Sequence[Sequence[tuple[float, ...]]]) -> Array:
    """Put the rows of all images into one array."""
    labels = np.full((len(rows), max(map(len, rows)), _COLUMNS), np.nan)
    for number, row in enumerate(rows):
        labels[number, : len(row)] = np.array(row).reshape(-1, _COLUMNS)
    return labels


def require_boxes(text: str, labels: Array, outputs: Sequence[Output]) -> None:
    if labels.ndim != 3 or labels.shape[-1] != _COLUMNS:
        raise refuse(f"{text} takes --labels as a file of boxes, COCO's or Open Images'")
    boxes, scores, classes = outputs
    shape = boxes.shape
    if len(shape) != 3 or shape[2] != 4 or scores.shape != shape[:2] or classes.shape != shape[:2]:
        given = ", ".join(f"{each.name} is {list(each.shape)}" for each in outputs)
        raise refuse(
            f"{text} takes outputs of boxes [items, boxes, 4], and of scores and classes [items, boxes]; {given}"
        )


def by_image(boxes: Array, scores: Array, classes: Array, labels: Array) -> Parts:
    """Boxes with a score of 0 or a class below 0 fill up an image."""
    found = np.concatenate([boxes, scores[..., None], classes[..., None]], axis=-1, dtype=np.float64)
    return (
        objects([own[(own[:, 4] > 0) & (own[:, 5] >= 0)] for own in found]),
        objects([own[~np.isnan(own[:, 0])] for own in labels]),
    )


def _mean_average_precision(found: Array, labels: Array) -> float:
    from pycocotools.cocoeval import COCOeval

    given = [
        {"image_id": image, "bbox": [left, top, right - left, bottom - top], "category_id": int(category),
         "score": score, "area": (right - left) * (bottom - top), "iscrowd": 0}
        for image, rows in enumerate(found)
        for left, top, right, bottom, score, category in rows.tolist()
    ]  # fmt: skip
    right = [
        {"image_id": image, "bbox": box, "category_id": int(category), "area": box[2] * box[3], "iscrowd": int(crowd)}
        for image, rows in enumerate(labels)
        for *box, category, crowd in rows.tolist()
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(_coco(right, len(labels), right), _coco(given, len(labels), right), "bbox")
        # Small, medium and large objects alone are other figures.
        evaluation.params.areaRng, evaluation.params.areaRngLbl = evaluation.params.areaRng[:1], ["all"]
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0])


def _coco(annotations: list[dict[str, Any]], images: int, right: list[dict[str, Any]]) -> Any:
    """Ids count from 1: pycocotools takes a match with id 0 for none."""
    from pycocotools.coco import COCO

    found = COCO()
    found.dataset = {
        "images": [{"id": image} for image in range(images)],
        "categories": [{"id": category} for category in sorted({each["category_id"] for each in right})],
        "annotations": [{"id": number, **each} for number, each in enumerate(annotations, 1)],
    }
    found.createIndex()
    return found


METRICS: Mapping[str, TaskMetric] = {
    "map": TaskMetric("COCO's mean average precision, over overlaps from 0.50 to 0.95", require_boxes, by_image,
                      _mean_average_precision, Package("pycocotools", "pycocotools", "coco"),
                      outputs=OUTPUTS, reads="coco", best_is_1=True, most_resampled=0),
}  # fmt: skip
