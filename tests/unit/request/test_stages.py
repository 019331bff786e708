"""The files and functions around a model, as a request names them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.fields.data.stages import MOST_ITEMS, Stages, hash_of_files, stages_of
from fairlap.request.work import Work


def folder_of(path: Path, names: list[str]) -> Path:
    path.mkdir()
    for name in names:
        (path / name).write_text(name)
    return path


def test_stages_are_named_after_their_functions_and_in_full_where_names_recur() -> None:
    stages = Stages("/photos", ("a.jpg",), ("m:decode", "m:resize"), ("m:best",))
    assert stages.labels == ("decode", "resize", "model", "best")
    stages = Stages("/photos", ("a.jpg",), ("m:run", "n:run", "m:model"))
    assert stages.labels == ("m:run", "n:run", "m:model", "model")


def test_all_files_are_taken_in_order_without_hidden_ones_and_folders(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", ["b.jpg", "a.jpg", ".thumbs"])
    (folder / "more").mkdir()
    stages = stages_of(str(folder), ["m:decode"], [])
    assert stages.names == ("a.jpg", "b.jpg")
    assert [file.read_text() for file in stages.files] == ["a.jpg", "b.jpg"]


def test_many_files_are_sampled_evenly(tmp_path: Path) -> None:
    names = [f"{number:03}" for number in range(10 * MOST_ITEMS)]
    stages = stages_of(str(folder_of(tmp_path / "many", names)), ["m:decode"], [])
    assert stages.names == tuple(names[::10])


def test_the_work_is_that_of_the_contents_wherever_they_are(tmp_path: Path) -> None:
    first, second = (folder_of(tmp_path / name, ["a.jpg", "b.jpg"]) for name in ("one", "two"))
    works = [
        Work("model.onnx", 1, stages=stages_of(str(folder), ["m:decode"], ["m:best"])) for folder in (first, second)
    ]
    assert works[0].id == works[1].id
    (second / "b.jpg").write_text("another")
    other = stages_of(str(second), ["m:decode"], ["m:best"])
    assert Work("model.onnx", 1, stages=other).id != works[0].id
    assert works[1].stages is not None
    assert hash_of_files(works[1].stages) != works[1].stages.sha256
    less = msgspec.structs.replace(works[0], stages=stages_of(str(first), ["m:decode"], []))
    assert less.id != works[0].id
    assert Work("model.onnx", 1).id != works[0].id


@pytest.mark.parametrize(
    ("before", "after"),
    [(["decode"], []), (["m:decode", "m:decode"], []), (["m:decode"], ["m.best"]), (["m:decode", ""], [])],
)
def test_functions_that_are_no_names_are_refused(tmp_path: Path, before: list[str], after: list[str]) -> None:
    folder = folder_of(tmp_path / "photos", ["a.jpg"])
    with pytest.raises(InvalidRequest) as refused:
        stages_of(str(folder), before, after)
    assert refused.value.code == "E_ITEMS"


def test_a_folder_that_is_empty_or_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("empty", "file", "missing"):
        with pytest.raises(InvalidRequest) as refused:
            stages_of(str(tmp_path / name), ["m:decode"], [])
        assert refused.value.code == "E_ITEMS"
