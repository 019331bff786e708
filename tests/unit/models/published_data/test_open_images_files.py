"""For Open Images' own score, boxes are of the classes above theirs too, and what people looked for is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.metrics.boxes import BOX, GROUP, VERIFIED
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_files, inputs_of
from fairlap.models.task_metrics import parts_of, value_of
from fairlap.request.fields.source import Source
from open_images_part import ANIMAL, CAR, CARNIVORE, CAT, DOG, SIDE, VEHICLE, WHEEL, open_images

pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")


def asked(file: Path, *metrics: str) -> Source:
    return Source(
        "m.onnx", "/m.onnx", inputs=str(file), labels=str(file), metrics=metrics or ("oi_map",),
        shapes=(("x", (2, 3, SIDE, SIDE)),),
    )  # fmt: skip


def labels_of(source: Source) -> np.ndarray:
    return labels_in(source.labels, source.metrics, source)


def rows_of(labels: np.ndarray, item: int) -> list[tuple[float, ...]]:
    return sorted(tuple(row) for row in labels[item].tolist() if not np.isnan(row[0]))


def test_boxes_are_of_all_classes_above_theirs_and_what_is_absent_is_so_in_all_kinds(tmp_path: Path) -> None:
    labels = labels_of(asked(open_images(tmp_path)))
    dog, wheel, car = (4.0, 4.0, 4.0, 8.0), (0.0, 0.0, 2.0, 2.0), (8.0, 0.0, 8.0, 16.0)
    looked_for = {item: [] for item in range(3)}  # type: dict[int, list[int]]
    for item in range(3):
        looked_for[item] = sorted(int(row[4]) for row in rows_of(labels, item) if row[5] == VERIFIED)
    boxes = [[row for row in rows_of(labels, item) if row[5] != VERIFIED] for item in range(3)]
    assert boxes[0] == sorted([(*wheel, WHEEL, BOX), *((*dog, each, BOX) for each in (DOG, CARNIVORE, ANIMAL))])
    assert boxes[1] == [(*car, CAR, GROUP), (*car, VEHICLE, GROUP)]
    assert boxes[2] == []
    assert looked_for == {0: [CAR, DOG, ANIMAL, CARNIVORE, VEHICLE], 1: [CAR, VEHICLE], 2: [DOG, CARNIVORE, CAT]}


def test_photos_without_boxes_count_and_all_that_is_read_is_named(tmp_path: Path) -> None:
    source = asked(open_images(tmp_path))
    [inputs] = inputs_of(source)
    assert inputs[""].shape == (3, 3, SIDE, SIDE)
    names = {each.name for each in given_files(source)}
    assert {"a.jpg", "c.jpg", "bbox_labels_600_hierarchy.json"} < names
    assert "validation-annotations-human-imagelabels-boxable.csv" in names
    [others] = inputs_of(msgspec.structs.replace(source, metrics=("map",)))
    assert others[""].shape == (2, 3, SIDE, SIDE)
    assert labels_of(msgspec.structs.replace(source, metrics=("map",))).shape[0] == 2


def test_the_score_of_a_model_that_names_a_dog_as_a_dog_alone(tmp_path: Path) -> None:
    """It finds one of five classes; two more wrong ones are in what was looked for, and one is not."""
    labels = labels_of(asked(open_images(tmp_path)))
    boxes = np.array([[[4, 4, 8, 12], [9, 9, 12, 12]], [[0, 0, 3, 3], [0, 0, 3, 3]], [[1, 1, 5, 5], [1, 1, 5, 5]]])
    classes = np.array([[DOG, CAR], [DOG, DOG], [DOG, CAR]])
    scores = np.array([[0.9, 0.8], [0.99, 0.98], [0.95, 0.97]])
    found = value_of("oi_map", [parts_of("oi_map", [boxes.astype(float), scores, classes], labels)])
    to_find = [DOG, CARNIVORE, ANIMAL, WHEEL, CAR, VEHICLE]
    assert found == pytest.approx((1 / 2) / len(to_find))  # of the dogs that count, the one of 0.95 is wrong


def refused(source: Source) -> str:
    with pytest.raises(FairlapError) as error:
        labels_of(source)
    assert error.value.code in ("E_DATA", "E_METRIC")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("file", "change", "named"),
    [
        ("bbox_labels_600_hierarchy.json", None, "hierarchy"),
        ("bbox_labels_600_hierarchy.json", lambda _: "[]", "bbox_labels_600_hierarchy.json"),
        ("bbox_labels_600_hierarchy.json", lambda text: text.replace("LabelName", "Label"), "bbox_labels"),
        ("validation-annotations-human-imagelabels-boxable.csv", None, "imagelabels"),
        ("validation-annotations-human-imagelabels-boxable.csv", lambda text: text.replace("/m/dog,1", "/m/dog,0.7"),
         "line 2"),
        ("validation-annotations-human-imagelabels-boxable.csv", lambda text: text.replace("Confidence", "Sure"),
         "Confidence"),
        ("validation/c.jpg", None, "c.jpg"),
    ],
)  # fmt: skip
def test_what_is_missing_or_wrong_is_a_line_with_the_file(
    tmp_path: Path, file: str, change: Callable[[str], str] | None, named: str
) -> None:
    path = open_images(tmp_path)
    if change is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(change((tmp_path / file).read_text()))
    assert named in refused(asked(path))


def test_other_labels_and_other_metrics_of_boxes_are_refused(tmp_path: Path) -> None:
    path = open_images(tmp_path)
    refused(asked(path, "oi_map", "map"))
    refused(asked(path, "top1", "oi_map"))
    np.save(tmp_path / "x.npy", np.zeros((3, 3, SIDE, SIDE)))
    source = msgspec.structs.replace(asked(path), inputs=str(tmp_path / "x.npy"))
    assert path.name in refused(source)


def test_a_hierarchy_as_deep_as_files_can_be_ends(tmp_path: Path) -> None:
    path = open_images(tmp_path)
    deep = '{"LabelName": "/m/dog", "Subcategory": [' * 200 + "]}" * 200
    (tmp_path / "bbox_labels_600_hierarchy.json").write_text(deep)
    assert rows_of(labels_of(asked(path)), 0)
