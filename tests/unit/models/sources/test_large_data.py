"""Data for a metric are read in pieces: a set that is larger than the memory can be scored."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.array_files import numpy_files, safetensors
from fairlap.models.array_files.npy_map import mapped, pieces_of
from fairlap.models.metrics.metric import IGNORED, Output
from fairlap.models.sources.bundle import bundle_in, data_file, labels_file
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_inputs
from fairlap.models.sources.opening import Order
from fairlap.models.spec import LABELS
from fairlap.models.task_metrics import require_labels
from large_onnx import layer_weights, layers_beside, opened_in_a_fresh_process
from machine_marks import needs, needs_proc
from onnx_files import source_of

needs("onnx")
WIDTH, BATCH, ITEMS = 256, 512, 2**17 + 3  # 134 MB of inputs
SEEDS = {"inputs": 1, "changed": 2}
MOST_MORE = 48 * 2**20


def sparse(path: Path, items: int) -> np.ndarray:
    """Items in a file that takes no room on the disk, but for some rows."""
    array = np.lib.format.open_memmap(path, "w+", np.float32, (items, WIDTH))
    for place in (0, 1, items // 2, items - 1):
        array[place] = np.random.default_rng(place).standard_normal(WIDTH, np.float32)
    array.flush()
    return array


@pytest.mark.slow
@needs_proc
def test_the_memory_for_data_does_not_grow_with_them(tmp_path: Path) -> None:
    model = layers_beside(tmp_path / "m.onnx", layer_weights(1, WIDTH))
    peaks, batches = {}, {}
    for items in (BATCH, ITEMS):
        given = sparse(tmp_path / f"x{items}.npy", items)
        labels = np.arange(items) % WIDTH
        np.save(tmp_path / f"labels{items}.npy", labels)
        source = source_of(
            model,
            inputs=str(tmp_path / f"x{items}.npy"),
            labels=str(tmp_path / f"labels{items}.npy"),
            metrics=("top1",),
            batch=BATCH,
        )
        order = msgspec.json.encode(Order(source, SEEDS, str(tmp_path)))
        folder, peaks[items] = opened_in_a_fresh_process(order, tmp_path / "cache")
        batches[items] = len(list(folder.glob("data-*")))
        assert bundle_in(folder).items == items
        assert np.array_equal(safetensors.read(labels_file(folder))[LABELS], labels)
        last = safetensors.read(data_file(folder, batches[items] - 1))["x"]
        places = np.arange((batches[items] - 1) * BATCH, batches[items] * BATCH) % items
        assert np.array_equal(last, given[places])
    assert batches == {BATCH: 1, ITEMS: 257}
    assert peaks[ITEMS] - peaks[BATCH] < MOST_MORE < ITEMS * WIDTH * 4 / 2


def test_a_file_of_one_array_may_be_larger_than_the_memory_and_an_archive_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.arange(10**6, dtype=np.float32).reshape(-1, 10)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", x=array)
    monkeypatch.setattr(numpy_files, "available_memory_bytes", lambda: 10**6)
    assert np.array_equal(given_inputs(str(tmp_path / "x.npy"), "")[0][""], array)
    assert np.array_equal(labels_in(tmp_path / "x.npy", ["mse"]), array)
    with pytest.raises(FairlapError) as refused:
        given_inputs(str(tmp_path / "x.npz"), "")
    assert refused.value.code == "E_SOURCE_SIZE"


def test_an_archive_that_is_named_as_one_array_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", labels=np.arange(3))
    (tmp_path / "x.npz").rename(tmp_path / "x.npy")
    for read in (lambda: labels_in(tmp_path / "x.npy", ["top1"]), lambda: given_inputs(str(tmp_path / "x.npy"), "")):
        with pytest.raises(FairlapError) as refused:
            read()
        assert refused.value.code in ("E_METRIC", "E_SOURCE_INPUTS")


def test_pieces_are_all_rows_in_their_order(tmp_path: Path) -> None:
    array = np.arange(3 * 2**21, dtype=np.float64).reshape(-1, 3)  # 50 MB
    np.save(tmp_path / "x.npy", array)
    pieces = [piece.copy() for piece in pieces_of(mapped(tmp_path / "x.npy"))]
    assert len(pieces) > 2
    assert np.array_equal(np.concatenate(pieces), array)
    assert [piece.shape for piece in pieces_of(np.empty((0, 3)))] == [(0, 3)]


@pytest.mark.parametrize("place", [0, 2**21 + 5, 2**22 - 1])
def test_one_wrong_label_among_millions_is_found_in_any_piece(tmp_path: Path, place: int) -> None:
    items = 2**22
    output = [Output("scores", (8, 10), "float32")]
    labels = np.full(items, IGNORED)
    labels[place] = 3
    np.save(tmp_path / "labels.npy", labels)
    require_labels("top1", mapped(tmp_path / "labels.npy"), items, output)
    for metric, wrong in (("top1", 10), ("roc_auc", 3), ("top1", -1)):
        labels[place] = wrong
        np.save(tmp_path / "labels.npy", labels)
        with pytest.raises(FairlapError) as refused:
            require_labels(metric, mapped(tmp_path / "labels.npy"), items, output)
        assert refused.value.code == "E_METRIC"
    values = np.zeros((items, 1), np.float32)
    values[place] = np.nan
    with pytest.raises(FairlapError):
        require_labels("mse", values, items, [Output("y", (8, 1), "float32")])
