"""Folders of Hugging Face's datasets are read as `save_to_disk` writes them; others are a line with the file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import FairlapError
from fairlap.models.published_data.hugging_face_folders import hugging_face_folder
from fairlap.models.published_data.text_tokens import is_text
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_inputs
from machine_marks import needed

arrow = needed("pyarrow")
Image: Any = pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")

DRAWN = np.random.default_rng(0)
PIXELS, LABELS, NAMES = (
    DRAWN.integers(0, 256, (9, 4, 5, 3), np.uint8),
    [2, 0, 1, 0, 2, 1, 0, 1, 2],
    ["ant", "bee", "cat"],
)
VALUE = {"dtype": "float64", "_type": "Value"}
CLASSES = {"names": NAMES, "_type": "ClassLabel"}


def split(folder: Path, columns: dict[str, Any], features: dict[str, Any], files: int = 2) -> None:
    """Write files in Arrow's streaming format, and what is beside them."""
    folder.mkdir(parents=True)
    table = arrow.table(columns)
    names = [f"data-{number:05}-of-{files:05}.arrow" for number in range(files)]
    edges = np.linspace(0, table.num_rows, files + 1).astype(int)
    for name, first, last in zip(names, edges[:-1], edges[1:], strict=True):
        with arrow.OSFile(str(folder / name), "wb") as file, arrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table.slice(first, last - first), max_chunksize=2)
    unset: dict[str, Any] = {
        "_format_type": None,
        "_format_columns": None,
        "_format_kwargs": {},
        "_output_all_columns": False,
    }
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "2d0a5bbc1cd1e2f4", **unset}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"citation": "", "features": features, "license": ""}))


def encoded(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def images(root: Path) -> Path:
    """Six to learn from, and three that are held out."""
    kept = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    for name, some in (("train", slice(0, 6)), ("test", slice(6, 9))):
        cells = [{"bytes": encoded(pixels), "path": None} for pixels in PIXELS[some]]
        columns = {"image": arrow.array(cells, kept), "label": LABELS[some]}
        split(root / name, columns, {"image": {"_type": "Image"}, "label": CLASSES})
    (root / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    return root


def test_images_keep_their_classes_and_their_test_part(tmp_path: Path) -> None:
    root = images(tmp_path / "set")
    found = items_in(data_named(str(root)))
    assert found.inputs["image"] == pytest.approx(PIXELS.transpose(0, 3, 1, 2) / np.float32(255))
    assert (found.labels.tolist(), list(found.classes)) == (LABELS, NAMES)
    assert found.held_out is not None
    assert found.held_out.tolist() == [False] * 6 + [True] * 3
    [inputs] = given_inputs(str(root), "")
    assert np.array_equal(inputs[""], found.inputs["image"][6:])
    assert labels_in(root, ["top1"]).tolist() == LABELS[6:]
    [inputs] = given_inputs(str(root / "train"), "")  # one split alone
    assert np.array_equal(inputs[""], found.inputs["image"][:6])


def test_a_table_is_learnt_with_the_names_of_its_classes(tmp_path: Path) -> None:
    widths = DRAWN.normal(size=9)
    features = {"idx": {"dtype": "int32", "_type": "Value"}, "label": CLASSES, "width": VALUE, "height": VALUE}
    split(tmp_path / "t", {"idx": range(9), "label": LABELS, "width": widths, "height": widths * 2}, features)
    found = items_in(data_named(str(tmp_path / "t")))
    assert found.inputs["features"] == pytest.approx(np.stack([widths, widths * 2], axis=1))
    assert [found.classes[number] for number in found.labels] == [NAMES[number] for number in LABELS]


def test_texts_are_those_of_the_part_that_is_held_out(tmp_path: Path) -> None:
    text = {"dtype": "string", "_type": "Value"}
    features = {"sentence1": text, "sentence2": text, "label": CLASSES, "idx": {"dtype": "int32", "_type": "Value"}}
    for name in ("train", "validation"):
        ones, others = ([f"{name} {each} {number}" for number in range(3)] for each in ("a", "b"))
        columns = {"sentence1": ones, "sentence2": others, "label": [0, 1, 2], "idx": [0, 1, 2]}
        split(tmp_path / "set" / name, columns, features, files=1)
    (tmp_path / "set" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation"]}))
    assert is_text(tmp_path / "set")
    found = hugging_face_folder(tmp_path / "set").texts()
    assert (found.first[0], found.second and found.second[2]) == ("validation a 0", "validation b 2")
    assert found.labels is not None
    assert found.labels.tolist() == [0, 1, 2]


def _without(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).unlink()


def _with(name: str, content: bytes) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        (root / name).write_bytes(content)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (_without("train/state.json"), "state.json"),
        (_without("test/dataset_info.json"), "test"),
        (_without("test/data-00001-of-00002.arrow"), "data-00001-of-00002.arrow"),
        (_with("train/data-00000-of-00002.arrow", b"no arrow" * 9), "data-00000-of-00002.arrow"),
        (_with("train/state.json", b"{}"), "state.json"),
        (_with("train/state.json", b'{"_data_files": [{"filename": "../../etc/passwd"}]}'), "passwd"),
        (_with("dataset_dict.json", b'{"splits": ["..", "train"]}'), "set"),
        (_with("dataset_dict.json", b'{"splits": ["other"]}'), "dataset_dict.json"),
        (_with("dataset_dict.json", b"splits"), "dataset_dict.json"),
    ],
)
def test_other_folders_are_a_line_with_the_file(tmp_path: Path, spoil: Callable[[Path], None], named: str) -> None:
    root = images(tmp_path / "set")
    spoil(root)
    if named in ("test", "set"):  # what is not needed is not missed
        assert len(items_in(data_named(str(root)))) >= 6
        return
    with pytest.raises(FairlapError) as error:
        items_in(data_named(str(root)))
    assert error.value.code == "E_DATA"
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_below_zero_of_a_hidden_test_part_are_refused(tmp_path: Path) -> None:
    split(tmp_path / "t", {"width": range(9), "label": [-1] * 9}, {"width": VALUE, "label": CLASSES})
    with pytest.raises(FairlapError, match="label"):
        items_in(data_named(str(tmp_path / "t")))
