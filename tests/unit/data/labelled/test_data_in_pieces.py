"""Labelled data are read, hashed, split and scaled some rows at a time, to the same bits as in memory."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fairlap.data.labelled import csv_file, npz_file, parquet_file
from fairlap.data.labelled.items import Items
from fairlap.data.labelled.labelled_set import LabelledSet, parted
from fairlap.data.labelled.opening import data_named, items_in
from fairlap.errors import InvalidRequest
from fairlap.models.array_files import npy_map, stored_rows
from fairlap.models.array_files.stored_rows import StoredRows, mean_and_deviation, picked_rows
from machine_marks import needs_proc

ROWS, COLUMNS = 300, 7
RNG = np.random.default_rng(5)
TABLE = RNG.standard_normal((ROWS, COLUMNS)) * 10.0 ** RNG.integers(-3, 4, COLUMNS) + 5
VALUES = RNG.standard_normal(ROWS)
KINDS = RNG.permutation(np.arange(ROWS) % 3)
NAMES = np.array(["wolf", "ape", "10"])[KINDS]


def written_csv(path: Path, labels: np.ndarray) -> Path:
    names = ",".join(f"c{number}" for number in range(COLUMNS))
    lines = [",".join([*map(repr, row.tolist()), str(label)]) for row, label in zip(TABLE, labels, strict=True)]
    path.write_text(f"{names},label\n" + "\n".join(lines) + "\n")
    return path


def csv_of_classes(folder: Path) -> Path:
    return written_csv(folder / "a.csv", NAMES)


def csv_of_values(folder: Path) -> Path:
    return written_csv(folder / "a.csv", VALUES)


def parquet(folder: Path) -> Path:
    arrow = pytest.importorskip("pyarrow", reason="`make test` installs it and runs this")
    from pyarrow import parquet as files

    columns = {f"c{number}": TABLE[:, number] for number in range(COLUMNS)}
    files.write_table(arrow.table({**columns, "label": list(NAMES)}), folder / "a.parquet", row_group_size=70)
    return folder / "a.parquet"


def npz(folder: Path) -> Path:
    images = RNG.integers(0, 256, (ROWS, 1, 3, 2), np.uint8)
    np.savez(folder / "a.npz", image=images, table=TABLE, labels=KINDS)
    return folder / "a.npz"


def compressed(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", table=TABLE, labels=VALUES)
    return folder / "a.npz"


def images(folder: Path) -> Path:
    library = pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")
    for number, pixels in enumerate(RNG.integers(0, 256, (20, 5, 4), np.uint8)):
        to = folder / "photos" / f"kind{number % 2}"
        to.mkdir(parents=True, exist_ok=True)
        library.fromarray(pixels).save(to / f"{number:02}.png")
    return folder / "photos"


MADE: list[Callable[[Path], Path]] = [csv_of_classes, csv_of_values, parquet, npz, compressed, images]


def in_pieces(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """With limits so small that every file is read in many pieces, and no array stays in memory."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
    for module in (stored_rows, npz_file):
        monkeypatch.setattr(module, "IN_MEMORY_BYTES", 100)
    for module in (csv_file, parquet_file):
        monkeypatch.setattr(module, "_CELLS_AT_ONCE", 50)
    for module in (npz_file, npy_map):
        monkeypatch.setattr(module, "_PIECE_BYTES", 250)
    monkeypatch.setattr(stored_rows, "_PICKED_BYTES", 300)


def read(path: Path, fraction: float) -> tuple[Items, LabelledSet]:
    items = items_in(data_named(str(path)))
    return items, parted(items, fraction=fraction)


def arrays_of(found: LabelledSet) -> dict[str, np.ndarray]:
    held = {f"held {name}": array for name, array in found.held_inputs.items()}
    return {**found.inputs, **held, "labels": found.labels, "held labels": found.held_labels}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("fraction", [1.0, 0.4])
def test_data_in_pieces_are_to_the_last_bit_those_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Path], Path], fraction: float
) -> None:
    path = made(tmp_path)
    items, whole = read(path, fraction)
    in_pieces(monkeypatch, tmp_path)
    items_in_pieces, found = read(path, fraction)
    assert items_in_pieces.hash == items.hash
    assert (items_in_pieces.classes, items_in_pieces.sizes) == (items.classes, items.sizes)
    assert found.hash == whole.hash
    for name, array in arrays_of(whole).items():
        got = arrays_of(found)[name]
        assert (got.dtype, got.shape) == (array.dtype, array.shape)
        assert np.array_equal(got, array)
        assert got.flags.c_contiguous


def test_columns_are_standardised_as_numpy_does_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_pieces(monkeypatch, tmp_path)
    _, found = read(csv_of_values(tmp_path), 1.0)
    held, learnt = np.split(np.random.default_rng(0).permutation(ROWS), [ROWS // 5])
    mean, deviation = TABLE[learnt].mean(axis=0), TABLE[learnt].std(axis=0)
    by_hand = ((TABLE - mean) / deviation).astype(np.float32)
    assert np.array_equal(found.inputs["features"], by_hand[learnt])
    assert np.array_equal(found.held_inputs["features"], by_hand[held])
    of_labels = ((VALUES - VALUES[learnt].mean()) / VALUES[learnt].std()).astype(np.float32)
    assert np.array_equal(found.labels.ravel(), of_labels[learnt])


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 9, 130])
def test_means_and_deviations_are_those_of_numpy_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    array = np.random.default_rng(columns).standard_normal((1000, columns)) * 1e3 + 7
    places = np.random.default_rng(0).permutation(1000)[:777]
    in_pieces(monkeypatch, tmp_path)
    mean, deviation = mean_and_deviation(array, places)
    assert np.array_equal(mean, array[places].mean(axis=0))
    assert np.array_equal(deviation, array[places].std(axis=0))


def test_large_rows_are_mapped_from_a_file_that_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_pieces(monkeypatch, tmp_path)
    rows = StoredRows()
    for row in TABLE:
        rows.add(row[None])
    array = rows.array()
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)
    assert np.array_equal(array, TABLE)
    places = np.array([299, 0, 0, 7])
    assert np.array_equal(picked_rows(array, places), TABLE[places])
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


@pytest.mark.parametrize("place", [0, 150, 299])
def test_what_is_wrong_in_any_piece_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    in_pieces(monkeypatch, tmp_path)
    lines = csv_of_values(tmp_path).read_text().splitlines()
    for wrong, part in (
        ("red", f"item {place + 1}"),
        ("", f"line {place + 2}"),
        ("nan", f"line {place + 2}"),
        ("1e300", f"item {place + 1}"),
    ):
        cells = lines[place + 1].split(",")
        cells[2] = wrong
        (tmp_path / "b.csv").write_text("\n".join([*lines[: place + 1], ",".join(cells), *lines[place + 2 :]]) + "\n")
        with pytest.raises(InvalidRequest) as refused:
            items_in(data_named(str(tmp_path / "b.csv")))
        assert refused.value.code == "E_DATA"
        assert part in str(refused.value)
        assert "'c2'" in str(refused.value)


def test_one_label_that_is_text_makes_classes_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_pieces(monkeypatch, tmp_path)
    labels = [str(number % 4) for number in range(ROWS - 2)] + ["x", "x"]
    found = items_in(data_named(str(written_csv(tmp_path / "a.csv", np.array(labels)))))
    assert found.classes == ("0", "1", "2", "3", "x")
    assert [found.classes[number] for number in found.labels] == labels


def test_missing_values_in_a_late_piece_of_parquet_are_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow = pytest.importorskip("pyarrow", reason="`make test` installs it and runs this")
    from pyarrow import parquet as files

    in_pieces(monkeypatch, tmp_path)
    values = [None if number in (200, 290) else 0.5 for number in range(ROWS)]
    files.write_table(arrow.table({"a": values, "b": list(NAMES)}), tmp_path / "a.parquet")
    with pytest.raises(InvalidRequest, match="lacks 2 of 300"):
        items_in(data_named(str(tmp_path / "a.parquet")))


LEARNT = """
import sys
from pathlib import Path
from fairlap.data.labelled import npz_file
from fairlap.models.array_files import stored_rows
from fairlap.models.array_files import npy_map, safetensors
from fairlap.models.registry import find
from fairlap.models.spec import LABELS
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.scenarios.learning.race.learning_data import data_to_learn, labelled
npz_file.IN_MEMORY_BYTES = stored_rows.IN_MEMORY_BYTES = 2**22
npz_file._PIECE_BYTES = npy_map._PIECE_BYTES = stored_rows._PICKED_BYTES = 2**20
data, spec = data_to_learn(find("tabular"), sys.argv[1], 1.0, print)
found = labelled(Work("tabular", 32, "train", training=Training(Sgd(lr=0.1)), train_on=data), spec)
safetensors.write(Path(sys.argv[2]), {**found.inputs, LABELS: found.labels})
status = Path("/proc/self/status").read_text()
print(found.hash, 1024 * int(status.partition("VmHWM:")[2].split()[0]))
"""


def peak_of_learning(path: Path, cache: Path) -> int:
    """Find the most memory that was resident in a fresh process, which reads the data as a plan and a race do."""
    program = [sys.executable, "-c", LEARNT, str(path), str(cache / "items.safetensors")]
    cache.mkdir(exist_ok=True)
    environment = {**os.environ, "FAIRLAP_CACHE": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(program, env=environment, stdout=subprocess.PIPE, check=True)
    return int(done.stdout.split()[-1])


@pytest.mark.slow
@pytest.mark.sanitized  # memory is larger there
@needs_proc
def test_the_memory_for_data_to_learn_does_not_grow_with_them(tmp_path: Path) -> None:
    """Up to 205 MB of an archive, and 75 MB of text; arrays over 4 MB are mapped, and pieces have 1 MB."""
    peaks = {}
    for items in (20_000, 100_000):
        array = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (items, 256))
        array[::1000] = np.random.default_rng(0).standard_normal((len(array[::1000]), 256))
        np.savez(tmp_path / "a.npz", features=array, labels=np.arange(items) % 5)
        peaks[items] = peak_of_learning(tmp_path / "a.npz", tmp_path / "cache")
    assert peaks[100_000] - peaks[20_000] < 2**25
    for items in (10_000, 40_000):
        row = ",".join(f"{number / 7:.15f}" for number in range(100))
        with (tmp_path / "a.csv").open("w") as file:
            file.write(",".join(f"c{number}" for number in range(100)) + ",label\n")
            file.writelines(f"{row},kind{number % 5}\n" for number in range(items))
        peaks[items] = peak_of_learning(tmp_path / "a.csv", tmp_path / "cache")
    assert (tmp_path / "a.csv").stat().st_size > 70e6
    assert peaks[40_000] - peaks[10_000] < 2**25
