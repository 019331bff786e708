"""The data that a race accepts, the pipeline that feeds it, and one line for everything that a user can get wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data import datasets as fed_data
from fairlap.data.datasets import drawn_data, require_feedable, users_data
from fairlap.data.pipeline import Job
from fairlap.data.pipeline_choice import Choice, choice_in, without_choice
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.models.spec import Integers, Spec, Tensor
from fairlap.request.work import Work

IMAGES = Spec("images", "", (Tensor("image", ("batch", 3, 4)),), (Tensor("logits", ("batch", 2)),), (), 0, None, "")
WORDS = Spec(
    "words",
    "",
    (Tensor("ids", ("batch", 5), Integers(0, 9), "int32"), Tensor("mask", ("batch", 5), Integers(0, 2), "int32")),
    (Tensor("logits", ("batch", 2)),),
    (),
    0,
    None,
    "",
)


def saved(file: Path, array: Any) -> Path:
    np.save(file, array)
    return file


def test_a_file_feeds_a_model_with_one_input(tmp_path: Path) -> None:
    file = saved(tmp_path / "any-name.npy", np.zeros((10, 3, 4), np.float32))
    data = users_data(file, IMAGES, 4)
    assert (data.files, data.samples) == ({"image": file}, 10)


def test_a_folder_feeds_every_input_by_its_name(tmp_path: Path) -> None:
    for name in ("ids", "mask"):
        saved(tmp_path / f"{name}.npy", np.ones((7, 5), np.int32))
    data = users_data(tmp_path, WORDS, 7)
    assert data.files == {"ids": tmp_path / "ids.npy", "mask": tmp_path / "mask.npy"}
    assert data.samples == 7


def words(folder: Path, ids: Any, mask: Any) -> Path:
    saved(folder / "ids.npy", ids)
    saved(folder / "mask.npy", mask)
    return folder


def with_shape(folder: Path, shape: str) -> Path:
    """Write a header that NumPy would never write, before 4096 bytes."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    file = folder / "a.npy"
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(4096))
    return file


def with_number(folder: Path, sample: int, number: float) -> Path:
    array = np.ones((10, 3, 4), np.float32)
    array[sample, 2, 1] = number
    array[9] = np.nan
    return saved(folder / "a.npy", array)


def text(file: Path) -> Path:
    file.write_text("not an array, but a text that is longer than a header begins")
    return file


def zipped(file: Path) -> Path:
    np.savez(file, a=np.zeros((10, 3, 4), np.float32))
    return file


def linked_to_itself(file: Path) -> Path:
    file.symlink_to(file)
    return file


_GOOD = np.ones((7, 5), np.int32)
# Each with the values that the message must contain.
_WRONG: list[tuple[Spec, Callable[[Path], Path], str]] = [
    (IMAGES, lambda at: at / "none.npy", "none.npy"),
    (IMAGES, lambda at: at, "image.npy"),
    (IMAGES, lambda at: saved(at / "a.npy", np.zeros((10, 3, 4))), r"a.npy has float64 .*\[10, 3, 4\]"),
    (IMAGES, lambda at: saved(at / "a.npy", np.zeros((10, 4, 3), np.float32)), r"float32 .*\[N, 3, 4\]"),
    (IMAGES, lambda at: saved(at / "a.npy", np.zeros((), np.float32)), r"a.npy .* \(\)"),
    (IMAGES, lambda at: saved(at / "a.npy", np.zeros((10, 3, 4), ">f4")), ">f4.* save it as another type"),
    (IMAGES, lambda at: saved(at / "a.npy", np.asfortranarray(np.ones((10, 3, 4), np.float32))), "fortran_order"),
    (IMAGES, lambda at: saved(at / "a.npy", np.zeros((3, 3, 4), np.float32)), "3 samples.* 4"),
    (IMAGES, lambda at: saved(at / "a.npy", np.array([{}])), "a.npy .*'.O'.*save it as another type"),
    (IMAGES, lambda at: with_number(at, 7, np.nan), "a.npy has nan in sample 7"),
    (IMAGES, lambda at: with_number(at, 0, -np.inf), "a.npy has -inf in sample 0"),
    (IMAGES, lambda at: with_shape(at, "(-1, 3, 4)"), "a.npy .* tuple of sizes"),
    (IMAGES, lambda at: with_shape(at, "(9999999999999999999999, 3, 4)"), "a.npy .* tuple of sizes"),
    (IMAGES, lambda at: with_shape(at, "(4611686018427387904, 3, 4)"), "a.npy: .*memory"),
    (IMAGES, lambda at: with_shape(at, "(((("), "a.npy"),
    (IMAGES, lambda at: with_shape(at, "(100, 3, 4)"), "a.npy.* 4224 .* 4928"),
    (IMAGES, lambda at: linked_to_itself(at / "a.npy"), "a.npy"),
    (IMAGES, lambda at: at / ("a" * 5000), "File name too long"),
    (IMAGES, lambda at: text(at / "text.npy"), "text.npy .*numpy.save"),
    (IMAGES, lambda at: zipped(at / "zip.npz"), "zip.npz is a zip .*numpy.save"),
    (WORDS, lambda at: saved(at / "ids.npy", _GOOD), "2 files.* ids.npy, mask.npy"),
    (WORDS, lambda at: words(at, _GOOD, _GOOD[:6]), "ids 7, mask 6"),
    (WORDS, lambda at: words(at, 9 * _GOOD, _GOOD), "9 to 9.* ids .*0 to 8"),
    (WORDS, lambda at: words(at, _GOOD, -_GOOD), "mask .*0 to 1"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("spec", "made", "values"), _WRONG)
def test_data_that_does_not_fit_is_refused_in_one_line(
    tmp_path: Path, spec: Spec, made: Callable[[Path], Path], values: str
) -> None:
    with pytest.raises(InvalidRequest, match=values) as refused:
        users_data(made(tmp_path), spec, 4)
    assert refused.value.code == "E_DATA"
    assert "\n" not in str(refused.value)


def test_a_sample_that_is_not_finite_is_found_in_a_later_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fed_data, "_READ_BYTES", 3 * 48)
    with pytest.raises(InvalidRequest, match="sample 7"):
        users_data(with_number(tmp_path, 7, np.nan), IMAGES, 4)


WHOLE = Spec("whole", "", (Tensor("x", (4, 4)),), (Tensor("y", ("batch",)),), (), 0, None, "")


@pytest.mark.parametrize(
    ("spec", "work", "value"),
    [
        (IMAGES, Work("images", 4, "grad"), "--mode train"),
        (IMAGES, Work("images", 4, "infer", "bf16"), "float32"),
        (WHOLE, Work("whole", 4), "first axis of x"),
    ],
)
def test_work_that_cannot_be_fed_is_refused(spec: Spec, work: Work, value: str) -> None:
    with pytest.raises(InvalidRequest, match=value) as refused:
        require_feedable("synthetic", spec, work)
    assert refused.value.code == "E_DATA"


def test_drawn_data_is_drawn_once_has_whole_batches_and_values_that_the_model_takes(tmp_path: Path) -> None:
    data = drawn_data(WORDS, 6, 3, tmp_path)
    again = drawn_data(WORDS, 6, 3, tmp_path)
    assert data == again
    assert data.samples % 6 == 0
    assert data.samples >= 8 * 6
    assert users_data(tmp_path, _renamed(data.files, tmp_path), 6).samples == data.samples


@pytest.mark.parametrize("harm", [lambda file: os.truncate(file, 200), Path.unlink, lambda file: file.write_text("x")])
def test_drawn_data_that_is_incomplete_is_drawn_again(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    data = drawn_data(WORDS, 6, 3, tmp_path)
    before = {file: file.read_bytes() for file in data.files.values()}
    harm(data.files["mask"])
    drawn_data(WORDS, 6, 3, tmp_path)
    assert {file: file.read_bytes() for file in data.files.values()} == before
    assert sorted(tmp_path.iterdir()) == sorted(before)


def test_drawn_data_that_is_complete_is_not_written_again(tmp_path: Path) -> None:
    for spec in (WORDS, IMAGES):
        first = [file.stat() for file in drawn_data(spec, 6, 3, tmp_path).files.values()]
        again = [file.stat() for file in drawn_data(spec, 6, 3, tmp_path).files.values()]
        assert [each.st_ino for each in first] == [each.st_ino for each in again]
        assert [each.st_mtime_ns for each in first] == [each.st_mtime_ns for each in again]


def test_drawn_data_that_cannot_be_written_is_an_error_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FairlapError, match=r"fed-3-.*\.npy"):
        drawn_data(WORDS, 6, 3, tmp_path / "file")


def test_other_values_or_another_length_make_another_hash(tmp_path: Path) -> None:
    array = np.zeros((10, 3, 4), np.float32)
    hashes = set()
    for changed in (array, array + 1, array[:9]):
        file = saved(tmp_path / "a.npy", changed)
        hashes.add(users_data(file, IMAGES, 4).hash)
        assert users_data(file, IMAGES, 4).hash in hashes
    assert len(hashes) == 3


def _renamed(files: Any, folder: Path) -> Spec:
    for name, file in files.items():
        file.rename(folder / f"{name}.npy")
    return WORDS


@pytest.mark.parametrize(
    ("options", "framework", "chosen"),
    [
        ({}, "jax", Choice("fairlap")),
        ({"feed": "fairlap"}, "torch", Choice("fairlap")),
        ({"feed": "dataloader"}, "torch", Choice("dataloader", 0)),
        ({"feed": "dataloader", "workers": "2"}, "torch", Choice("dataloader", 2)),
        ({"feed": "tfdata"}, "tensorflow", Choice("tfdata")),
        ({"workers": "9"}, "executorch", Choice("fairlap")),
    ],
)
def test_a_pipeline_is_chosen_by_option(options: dict[str, str], framework: str, chosen: Choice) -> None:
    assert choice_in(options, framework) == chosen


@pytest.mark.parametrize(
    ("options", "framework", "values"),
    [
        ({"feed": "dali"}, "torch", "fairlap, dataloader, tfdata .*dali"),
        ({"feed": "dataloader"}, "jax", "feeds torch, not jax"),
        ({"feed": "tfdata"}, "torch", "feeds tensorflow, not torch"),
        ({"feed": "dataloader", "workers": "-1"}, "torch", "0 to 64"),
        ({"feed": "dataloader", "workers": "65"}, "torch", "0 to 64"),
        ({"feed": "dataloader", "workers": "many"}, "torch", "many"),
        ({"feed": "tfdata", "workers": "2"}, "tensorflow", "feed=dataloader"),
        ({"feed": "fairlap", "workers": "2"}, "torch", "feed=dataloader"),
    ],
)
def test_what_cannot_feed_is_refused(options: dict[str, str], framework: str, values: str) -> None:
    with pytest.raises(InvalidRequest, match=values):
        choice_in(options, framework)


def test_a_framework_gets_its_own_options_only() -> None:
    assert without_choice({"feed": "dataloader", "workers": "2", "mode": "fast"}) == {"mode": "fast"}
    assert without_choice({"workers": "2"}) == {"workers": "2"}


@pytest.mark.parametrize(("workers", "count"), [(0, "0 workers"), (1, "1 worker"), (2, "2 workers")])
def test_one_worker_is_reported_in_the_singular(tmp_path: Path, workers: int, count: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is not here; `make test` installs it and runs this")
    from fairlap.data.torch_pipeline import DataLoaderPipeline

    np.save(tmp_path / "x.npy", np.zeros((8, 2), np.float32))
    pipeline = DataLoaderPipeline(Job({"x": str(tmp_path / "x.npy")}, 8, 4, seed=1), workers)
    assert pipeline.description == f"DataLoader with {count}"
    pipeline.close()
