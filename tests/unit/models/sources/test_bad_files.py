"""Files that are no models are refused with a code and one line, without reading more than it takes to see that."""

from __future__ import annotations

import hashlib
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fairlap.request.fields.source import range_in
from onnx_files import BOUND, code_of, masked_lookup, source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")

CODES = {"onnx": "E_MODEL_FILE"}
SUFFIXES = ("onnx", "pt2", "pt", "pth", "keras", "tflite", "gguf")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", pickle.dumps({"a": 1}), bytes(1000)], ids=["", "zip", "pickle", "0"]
)
def test_what_is_no_model_is_refused(tmp_path: Path, suffix: str, content: bytes) -> None:
    file = tmp_path / f"model.{suffix}"
    file.write_bytes(content)
    assert code_of(source_of(file), tmp_path) == CODES.get(suffix, "E_SOURCE")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_five_gigabytes_are_neither_hashed_nor_read(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("the file was read")

    monkeypatch.setattr(hashlib, "file_digest", read)
    monkeypatch.setattr(Path, "read_bytes", read)
    file = tmp_path / f"model.{suffix}"
    with file.open("wb") as opened_file:
        os.truncate(opened_file.fileno(), 5 * 10**9)
    # Where memory is short, that is the reason.
    assert code_of(source_of(file), tmp_path) in (CODES.get(suffix, "E_SOURCE"), "E_SOURCE_SIZE")


def test_a_graph_of_tensorflow_that_is_larger_than_a_message_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    with (folder / "saved_model.pb").open("wb") as file:
        os.truncate(file.fileno(), 5 * 10**9)
    assert code_of(source_of(folder), tmp_path) == "E_SOURCE"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"model.{suffix}")
    assert code_of(source_of(tmp_path / f"model.{suffix}"), tmp_path) == "E_SOURCE"


@pytest.mark.parametrize("suffix", ["pt2", "pt", "keras"])
def test_an_archive_that_would_write_outside_is_refused(tmp_path: Path, suffix: str) -> None:
    for name in ("../outside.txt", "/tmp/outside.txt", "model/../../outside.txt"):
        file = tmp_path / f"model.{suffix}"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(name, "x")
        assert code_of(source_of(file), tmp_path) == "E_SOURCE"
    assert not (tmp_path.parent / "outside.txt").exists()


@pytest.mark.parametrize("location", ["/proc/kcore", "/dev/zero", "pipe", "."])
def test_external_data_that_is_no_file_of_the_folder_is_not_touched(tmp_path: Path, location: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    model = onnx.load(masked_lookup(tmp_path / "m.onnx"))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.dims[:] = [0]  # so that no size refuses it
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert code_of(source_of(tmp_path / "m.onnx", BOUND), tmp_path) == "E_MODEL_FILE"


def test_a_model_without_outputs_is_refused(tmp_path: Path) -> None:
    model = onnx.load(masked_lookup(tmp_path / "m.onnx"))
    del model.graph.output[:]
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert code_of(source_of(tmp_path / "m.onnx", BOUND), tmp_path) == "E_MODEL_FILE"


@pytest.mark.parametrize("asked", ["ids:0..50", "ids:-1..10"])
def test_a_range_outside_of_the_table_is_refused(tmp_path: Path, asked: str) -> None:
    source = source_of(masked_lookup(tmp_path / "m.onnx"), BOUND, ranges=(range_in(asked),))
    assert code_of(source, tmp_path) == "E_SHAPES"


def test_ids_outside_of_the_table_are_refused(tmp_path: Path) -> None:
    file = masked_lookup(tmp_path / "m.onnx")
    ids, mask = np.full((2, 6), 50), np.ones((2, 6), np.int64)
    np.savez(tmp_path / "inputs.npz", ids=ids, mask=mask)
    assert code_of(source_of(file, inputs=str(tmp_path / "inputs.npz")), tmp_path) == "E_SOURCE_INPUTS"
