"""Mean average precision is that of pycocotools on the annotation file itself."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.metrics.boxes import labels_of_annotations
from fairlap.models.metrics.metric import Output
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.task_metrics import parts_of, require_labels, score_of
from machine_marks import needed

coco = needed("pycocotools.coco")

IMAGES, BOXES = 12, 7


def annotation_file() -> dict[str, Any]:
    """Images in another order than their ids; one without boxes; two crowds."""
    drawn = np.random.default_rng(0)
    found: list[dict[str, Any]] = []
    ids = [int(each) for each in drawn.permutation(100)[:IMAGES]]
    for image in ids[1:]:
        for _ in range(int(drawn.integers(1, 5))):
            left, top, width, height = drawn.uniform(5, 90, 4).round(2).tolist()
            found.append({
                "id": len(found) + 1,
                "image_id": image,
                "category_id": int(drawn.choice([2, 5, 17])),
                "bbox": [left, top, width, height],
                "area": width * height,
                "iscrowd": int(len(found) in (3, 8)),
            })  # fmt: skip
    return {
        "info": {},
        "images": [{"id": each, "file_name": f"{each}.jpg"} for each in ids],
        "annotations": found,
        "categories": [{"id": each, "name": str(each)} for each in (2, 5, 9, 17)],
    }


def answers(file: dict[str, Any]) -> list[np.ndarray]:
    """Move some boxes, change the class of some, and add some of nothing; places that are left have a score of 0."""
    drawn = np.random.default_rng(1)
    boxes, scores = np.zeros((IMAGES, BOXES, 4), np.float32), np.zeros((IMAGES, BOXES), np.float32)
    classes = np.full((IMAGES, BOXES), -1)
    for place, image in enumerate(file["images"]):
        own = [each for each in file["annotations"] if each["image_id"] == image["id"]]
        for number, each in enumerate([*own, {"bbox": [1, 1, 30, 30], "category_id": 9}]):
            left, top, width, height = each["bbox"]
            moved = np.array([left, top, left + width, top + height]) + drawn.normal(0, 0.04, 4) * (width + height)
            boxes[place, number] = moved
            scores[place, number] = drawn.uniform(0.1, 1)
            classes[place, number] = each["category_id"] if drawn.random() > 0.1 else 17
    return [boxes, scores, classes]


def by_pycocotools(file: dict[str, Any], folder: Path, given: list[np.ndarray]) -> float:
    """With its own reader, and all of its sizes."""
    from pycocotools.cocoeval import COCOeval

    (folder / "annotations.json").write_text(json.dumps(file))
    boxes, scores, classes = given
    results = [
        {
            "image_id": image["id"],
            "category_id": int(classes[place, number]),
            "bbox": [float(left), float(top), float(right) - float(left), float(bottom) - float(top)],
            "score": float(scores[place, number]),
        }
        for place, image in enumerate(file["images"])
        for number, (left, top, right, bottom) in enumerate(boxes[place])
        if scores[place, number] > 0
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        right = coco.COCO(str(folder / "annotations.json"))
        evaluation = COCOeval(right, right.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0])


def test_the_figure_is_that_of_pycocotools(tmp_path: Path) -> None:
    file = annotation_file()
    given, labels = answers(file), labels_of_annotations(json.dumps(file).encode())
    halves = [slice(0, 5), slice(5, None)]
    found = score_of("map", [parts_of("map", [each[half] for each in given], labels[half]) for half in halves])
    expected = by_pycocotools(file, tmp_path, given)
    assert 0.1 < expected < 0.9
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert (found.low, found.high, found.items) == (None, None, IMAGES)
    assert found.why_no_interval


def test_right_boxes_have_1_and_no_boxes_have_0() -> None:
    file = annotation_file()
    for each in file["annotations"]:
        each["iscrowd"] = 0
    labels = labels_of_annotations(json.dumps(file).encode())
    left, top, width, height, category = np.nan_to_num(labels[..., :5]).transpose(2, 0, 1)
    boxes = np.stack([left, top, left + width, top + height], axis=-1)
    scores = np.where(np.isnan(labels[..., 0]), 0.0, 1.0)
    assert score_of("map", [parts_of("map", [boxes, scores, category], labels)]).value == pytest.approx(1.0)
    assert score_of("map", [parts_of("map", [boxes, 0 * scores, category], labels)]).value == 0.0
    assert score_of("map", [parts_of("map", [boxes, scores, category + 1], labels)]).value < 0.2


WRONG: list[Any] = [
    [],
    {"images": [{"id": 1}]},
    {"images": [{"id": 1}], "annotations": []},
    {"images": [{"id": 1}, {"id": 1}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 1, 1]}]},
    {"images": [{"id": 1}], "annotations": [{"image_id": 2, "category_id": 1, "bbox": [1, 1, 1, 1]}]},
    {"images": [{"id": 1}], "annotations": [{"image_id": 1, "category_id": -1, "bbox": [1, 1, 1, 1]}]},
    {"images": [{"id": 1}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 1]}]},
    {"images": [{"id": 1}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 1, 1], "iscrowd": 1}]},
]


@pytest.mark.parametrize("content", WRONG)
def test_what_is_no_annotation_file_is_refused_in_one_line(content: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(json.dumps(content))
    with pytest.raises(FairlapError) as refused:
        labels_in(tmp_path / "labels.json", ["map"])
    assert refused.value.code == "E_METRIC"
    assert "\n" not in str(refused.value)


def test_annotations_and_arrays_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(json.dumps(annotation_file()))
    assert labels_in(tmp_path / "labels.json", ["map:a+b+c"]).shape[0] == IMAGES
    with pytest.raises(FairlapError) as refused:
        labels_in(tmp_path / "labels.json", ["top1", "map"])
    assert refused.value.code == "E_METRIC"


def test_outputs_of_other_shapes_are_refused() -> None:
    labels = labels_of_annotations(json.dumps(annotation_file()).encode())
    boxes, scores, classes = (
        Output(name, shape, "float32")
        for name, shape in {"boxes": (4, BOXES, 4), "scores": (4, BOXES), "classes": (4, BOXES)}.items()
    )
    require_labels("map", labels, IMAGES, [classes, scores, boxes])
    for outputs in ([boxes, Output("scores", (4, BOXES, 1), "float32"), classes], [boxes, scores]):
        with pytest.raises(FairlapError) as refused:
            require_labels("map", labels, IMAGES, outputs)
        assert refused.value.code == "E_METRIC"
