"""Photos of COCO and Open Images come with their boxes at a detector's size; other trees are a line with the file."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.models.published_data.photos import GREY
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_files, inputs_of
from fairlap.request.fields.source import Source

Image: Any = pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")

SIDE = 32
SIZES = [(64, 32), (20, 40), (32, 32)]  # widths and heights
BOXES = [  # of each photo: left, top, width, height, category, crowd
    [(8, 4, 16, 8, 3, 0), (40, 20, 10, 6, 18, 1)],
    [],
    [(0, 0, 32, 32, 3, 0)],
]


def photo(size: tuple[int, int], boxes: Sequence[tuple[int, ...]], kind: str = "PNG") -> bytes:
    """White boxes on black."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    for left, top, width, height, *_ in boxes:
        pixels[top : top + height, left : left + width] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, quality=100)
    return file.getvalue()


def coco(root: Path) -> Path:
    """As `val2017.zip` and `annotations_trainval2017.zip` unpack."""
    (root / "val2017").mkdir(parents=True)
    (root / "annotations").mkdir()
    names = [f"{number:012}.jpg" for number in (139, 285, 632)]
    for name, size, boxes in zip(names, SIZES, BOXES, strict=True):
        (root / "val2017" / name).write_bytes(photo(size, boxes, "JPEG"))
    images = [
        {"license": 4, "file_name": name, "coco_url": "", "height": size[1], "width": size[0], "id": int(name[:12])}
        for name, size in zip(names, SIZES, strict=True)
    ]
    annotations = [
        {"segmentation": [], "area": width * height, "iscrowd": crowd, "image_id": image["id"], "category_id": category,
         "bbox": [left, top, width, height], "id": 100 * number + place}
        for number, (image, boxes) in enumerate(zip(images, BOXES, strict=True))
        for place, (left, top, width, height, category, crowd) in enumerate(boxes)
    ]  # fmt: skip
    file = root / "annotations" / "instances_val2017.json"
    categories = [{"supercategory": "x", "id": 3, "name": "car"}, {"supercategory": "x", "id": 18, "name": "dog"}]
    whole = {"info": {}, "licenses": [], "images": images, "annotations": annotations, "categories": categories}
    file.write_text(json.dumps(whole))
    return file


def open_images(root: Path) -> Path:
    """As the boxes of the validation part are published, beside the folder of its images."""
    (root / "validation").mkdir(parents=True)
    header = (
        "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
    )
    lines, names = [header], ["0001eeaf4aed83f9", "000595fe6fee6369", "00075905539074f2"]
    for name, (width, height), boxes in zip(names, SIZES, BOXES, strict=True):
        (root / "validation" / f"{name}.jpg").write_bytes(photo((width, height), boxes, "JPEG"))
        for left, top, wide, high, category, group in boxes:
            corners = (left / width, (left + wide) / width, top / height, (top + high) / height)
            kind = {3: "/m/0k4j", 18: "/m/0bt9lr"}[category]
            lines.append(f"{name},xclick,{kind},1,{','.join(f'{each:.6f}' for each in corners)},0,0,{group},0,0")
    (root / "class-descriptions-boxable.csv").write_text("/m/0bt9lr,Dog\n/m/0k4j,Car\n")
    file = root / "validation-annotations-bbox.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def asked(file: Path) -> Source:
    shapes = (("x", (2, 3, SIDE, SIDE)),)
    return Source("m.onnx", "/m.onnx", inputs=str(file), labels=str(file), shapes=shapes)


def read(source: Source) -> tuple[np.ndarray, np.ndarray]:
    [inputs] = inputs_of(source)
    return inputs[""], labels_in(source.labels, ["map"], source)


def test_a_box_is_where_its_part_of_the_photo_is(tmp_path: Path) -> None:
    images, labels = read(asked(coco(tmp_path)))
    assert (images.shape, labels.shape) == ((3, 3, SIDE, SIDE), (3, 2, 6))
    assert images.dtype == np.float32
    # Written down by hand: 64 by 32 becomes 32 by 16, eight rows below the top; 20 by 40 becomes 16 by 32.
    assert labels[0].tolist() == [[4, 10, 8, 4, 3, 0], [20, 18, 5, 3, 18, 1]]
    assert np.isnan(labels[1]).all()
    assert labels[2, 0].tolist() == [0, 0, 32, 32, 3, 0]
    assert images[0, :, 11:13, 6:10].min() > 0.9  # within the first box
    assert images[0, :, 9, :].max() < 0.2  # of the photo, above the box
    assert images[0, :, :8] == pytest.approx(GREY / 255)
    assert images[1, :, :, :8] == pytest.approx(GREY / 255)


def test_open_images_gives_the_same_boxes_with_its_own_classes(tmp_path: Path) -> None:
    source = asked(open_images(tmp_path))
    images, labels = read(source)
    by_coco = [[4, 10, 8, 4], [20, 18, 5, 3]]
    assert images.shape == (2, 3, SIDE, SIDE)  # a photo without boxes is not in the file
    assert labels[0, :, :4] == pytest.approx(np.array(by_coco), abs=1e-4)
    assert labels[0, :, 4:].tolist() == [[1, 0], [0, 1]]  # Car is the second class; a group is a crowd
    assert {each.name for each in given_files(source)} == {
        "validation-annotations-bbox.csv",
        "class-descriptions-boxable.csv",
        "0001eeaf4aed83f9.jpg",
        "00075905539074f2.jpg",
    }


def test_boxes_that_are_right_score_one(tmp_path: Path) -> None:
    pytest.importorskip("pycocotools", reason="`make test` installs it and runs this")
    from fairlap.models.task_metrics import parts_of, value_of

    _, labels = read(asked(coco(tmp_path)))
    filled = np.nan_to_num(labels, nan=0.0)
    corners = np.concatenate([filled[..., :2], filled[..., :2] + filled[..., 2:4]], axis=-1)
    scores = np.where(np.isnan(labels[..., 0]) | (labels[..., 5] == 1), 0.0, 0.9)
    assert value_of("map", [parts_of("map", [corners, scores, filled[..., 4]], labels)]) == pytest.approx(1.0)


def refused(source: Source) -> str:
    with pytest.raises(FairlapError) as error:
        read(source)
    assert error.value.code in ("E_DATA", "E_METRIC")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_photo_that_is_missing_none_or_of_another_size_is_named(tmp_path: Path) -> None:
    source = asked(coco(tmp_path))
    photo_file = tmp_path / "val2017" / "000000000285.jpg"
    photo_file.write_bytes(photo((21, 40), []))
    assert photo_file.name in refused(source)
    photo_file.write_bytes(b"no photo")
    assert photo_file.name in refused(source)
    photo_file.unlink()
    assert photo_file.name in refused(source)
    (tmp_path / "val2017").rename(tmp_path / "elsewhere")
    assert "000000000139.jpg" in refused(source)


def test_a_size_is_needed(tmp_path: Path) -> None:
    assert "instances_val2017.json" in refused(msgspec.structs.replace(asked(coco(tmp_path)), shapes=()))


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/passwd", "a/../../secret.jpg"])
def test_a_name_that_leaves_the_folder_of_images_is_refused(tmp_path: Path, name: str) -> None:
    file = coco(tmp_path)
    whole = json.loads(file.read_bytes())
    whole["images"][1]["file_name"] = name
    file.write_text(json.dumps(whole))
    assert file.name in refused(asked(file))


def test_labels_of_another_file_are_refused(tmp_path: Path) -> None:
    source = asked(coco(tmp_path / "one"))
    other = coco(tmp_path / "other")
    assert str(other) in refused(msgspec.structs.replace(source, labels=str(other)))


def test_labels_of_other_inputs_need_not_name_photos(tmp_path: Path) -> None:
    annotation = {"image_id": 1, "category_id": 3, "bbox": [0, 0, 4, 4]}
    (tmp_path / "y.json").write_text(json.dumps({"images": [{"id": 1}], "annotations": [annotation]}))
    np.save(tmp_path / "x.npy", np.zeros((1, 4)))
    source = Source("m.onnx", "/m.onnx", inputs=str(tmp_path / "x.npy"), labels=str(tmp_path / "y.json"))
    assert {each.name for each in given_files(source)} == {"x.npy", "y.json"}
    assert labels_in(source.labels, ["map"], source).shape == (1, 1, 6)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda text: text.replace("/m/0k4j", "/m/unknown"), "line 2"),
        (lambda text: text.replace("0.125000", "1.5"), "line 2"),
        (lambda text: text.replace("0.125000,0.375000", "0.375000,0.125000"), "line 2"),
        (lambda text: text.replace(",0,0,0,0\n", ",0,0\n", 1), "line 2"),
        (lambda text: text.partition("\n")[0] + "\n", "has no boxes"),
    ],
)
def test_wrong_lines_of_open_images_are_named(tmp_path: Path, change: Any, names: str) -> None:
    file = open_images(tmp_path)
    file.write_text(change(file.read_text()))
    assert names in refused(asked(file))


def test_open_images_without_its_classes_is_refused(tmp_path: Path) -> None:
    file = open_images(tmp_path)
    (tmp_path / "class-descriptions-boxable.csv").unlink()
    assert "class-descriptions-boxable.csv" in refused(asked(file))


def imagenet(root: Path) -> Source:
    """Folders of synsets, with photos of any size, some of them grey."""
    for number, size in enumerate([(40, 24), (16, 20), (32, 32), (9, 50)]):
        folder = root / ("n01440764", "n01443537")[number % 2]
        folder.mkdir(exist_ok=True)
        content = photo(size, [(0, 0, 4, 4)], "JPEG")
        if number == 2:
            file = io.BytesIO()
            Image.open(io.BytesIO(content)).convert("L").save(file, "JPEG")
            content = file.getvalue()
        (folder / f"{folder.name}_{number}.JPEG").write_bytes(content)
    return Source("m.onnx", "/m.onnx", inputs=str(root), labels=str(root), dims=(("height", 8), ("width", 12)))


def test_photos_of_any_size_are_brought_to_that_of_the_model(tmp_path: Path) -> None:
    source = imagenet(tmp_path)
    [inputs] = inputs_of(source)
    assert inputs[""].shape == (4, 3, 8, 12)
    by_hand = np.asarray(
        Image.open(tmp_path / "n01440764" / "n01440764_0.JPEG").resize((12, 8), Image.Resampling.BILINEAR)
    )
    assert np.array_equal(inputs[""][0], by_hand.transpose(2, 0, 1).astype(np.float32) / np.float32(255))
    assert labels_in(source.labels, ["top1"], source).tolist() == [0, 0, 1, 1]
    with pytest.raises(InvalidRequest, match="--shapes"):
        inputs_of(msgspec.structs.replace(source, dims=()))


def test_labels_are_read_without_decoding_a_photo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = imagenet(tmp_path)
    monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("it was decoded"))
    assert len(labels_in(source.labels, ["top1"], source)) == 4


def test_many_photos_are_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlap.models.array_files import stored_rows

    source = imagenet(tmp_path)
    [before] = inputs_of(source)
    monkeypatch.setattr(stored_rows, "IN_MEMORY_BYTES", 1000)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    [after] = inputs_of(msgspec.structs.replace(source, labels=""))
    assert np.array_equal(before[""], after[""])
    assert isinstance(after[""].base, np.ndarray)
    assert not after[""].flags.owndata
