"""Images in a WebDataset tar and in folders of classes are read alike; other layouts are a line with the file."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_inputs

Image: Any = pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")

DRAWN = np.random.default_rng(0)
PIXELS, LABELS = DRAWN.integers(0, 256, (6, 4, 5, 3), np.uint8), [0, 1, 0, 2, 1, 2]


def encoded(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def tar(path: Path, members: list[tuple[str, bytes]]) -> str:
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return str(path)


def samples() -> list[tuple[str, bytes]]:
    return [
        member
        for number, (pixels, label) in enumerate(zip(PIXELS, LABELS, strict=True))
        for member in (
            (f"train/{number:04}.cls", str(label).encode()),
            (f"train/{number:04}.png", encoded(pixels)),
            (f"train/{number:04}.json", b"{}"),
        )
    ]


def test_samples_of_a_tar_are_items_and_inputs_with_labels(tmp_path: Path) -> None:
    path = tar(tmp_path / "shard-000000.tar", samples())
    found = items_in(data_named(path))
    assert found.inputs["image"] == pytest.approx(PIXELS.transpose(0, 3, 1, 2) / np.float32(255))
    assert (found.labels.tolist(), found.classes) == (LABELS, ("0", "1", "2"))
    [inputs] = given_inputs(path, "")
    assert np.array_equal(inputs[""], found.inputs["image"])
    assert labels_in(path, ["top1"]).tolist() == LABELS


def test_a_folder_for_each_class_gives_inputs_and_labels(tmp_path: Path) -> None:
    for number, (pixels, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
        folder = tmp_path / ("ant", "bee", "cat")[label]
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.png").write_bytes(encoded(pixels))
    [inputs] = given_inputs(str(tmp_path), "")
    order = np.argsort(LABELS, kind="stable")
    assert inputs[""] == pytest.approx(PIXELS[order].transpose(0, 3, 1, 2) / np.float32(255))
    assert labels_in(str(tmp_path), ["top1"]).tolist() == sorted(LABELS)
    assert items_in(data_named(str(tmp_path))).classes == ("ant", "bee", "cat")
    (tmp_path / "ant" / "notes.txt").write_text("no image")
    with pytest.raises(InvalidRequest) as refused:
        given_inputs(str(tmp_path), "")
    assert "notes.txt" in str(refused.value)


@pytest.mark.parametrize(
    "members",
    [
        [],
        [("a.png", encoded(PIXELS[0]))],  # no class
        [("a.cls", b"1")],  # no image
        [("a.cls", b"one"), ("a.png", encoded(PIXELS[0]))],
        [("a.cls", b"-1"), ("a.png", encoded(PIXELS[0]))],
        [("a.cls", b"1"), ("a.png", b"no image")],
        [("a.cls", b"1"), ("a.png", encoded(PIXELS[0])), ("b.cls", b"0"), ("b.png", encoded(PIXELS[0, :2]))],
    ],
)
def test_other_tars_are_refused_with_the_file(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    path = tar(tmp_path / "shard.tar", members)
    for read in (lambda: items_in(data_named(path)), lambda: given_inputs(path, "")):
        with pytest.raises(InvalidRequest) as refused:
            read()
        assert refused.value.code == "E_DATA"
        assert path in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_file_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"no tar" * 200)
    with pytest.raises(InvalidRequest) as refused:
        items_in(data_named(str(tmp_path / "x.tar")))
    assert "x.tar" in str(refused.value)


def test_a_table_with_tabs_is_read_as_one_with_commas(tmp_path: Path) -> None:
    rows = [f"{number / 4}\t{number}\t{'ab'[number % 2]}" for number in range(8)]
    (tmp_path / "t.tsv").write_text("\n".join(["x\ty\tkind", *rows]))
    found = items_in(data_named(f"{tmp_path}/t.tsv:kind"))
    assert (found.classes, found.inputs["features"].shape) == (("a", "b"), (8, 2))
    (tmp_path / "c.tsv").write_text("x,kind\n1,a\n")
    with pytest.raises(InvalidRequest) as refused:
        items_in(data_named(f"{tmp_path}/c.tsv"))
    assert "c.tsv" in str(refused.value)
