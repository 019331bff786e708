"""A file whose name lies is refused by what it really is; files here are written by other libraries, or by hand."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.models.registry import find
from fairlap.models.sources.file_contents import content_of
from machine_marks import needs
from onnx_files import BOUND, masked_lookup, opened, source_of

needs("onnx")

SUFFIXES = (".onnx", ".tflite", ".keras", ".pt2", ".pt", ".jit", ".xml")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 25303114\n"
SAFETENSORS = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'


def write_zip(file: Path, *names: str) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")


def write_tar(file: Path) -> None:
    with tarfile.open(file, "w") as archive:
        archive.add(__file__, "model.onnx")


def write_arrays(file: Path) -> None:
    with file.open("wb") as opened_file:
        np.savez(opened_file, a=np.zeros(2))


def write(content: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(content)


# What writes it, a word that names it, and the suffixes that it may have.
LIES: dict[str, tuple[Callable[[Path], object], str, tuple[str, ...]]] = {
    "empty": (write(b""), "empty", ()),
    "pointer": (write(POINTER), "24.1 MiB", ()),
    "ONNX": (masked_lookup, "ONNX", (".onnx",)),
    "LiteRT": (write(b"\x1c\x00\x00\x00TFL3" + bytes(64)), "LiteRT", (".tflite",)),
    "OpenVINO": (write(b'<?xml version="1.0"?>\n<net name="m" version="11"></net>'), "OpenVINO", (".xml",)),
    "Keras": (lambda file: write_zip(file, "metadata.json", "config.json", "model.weights.h5"), "Keras", (".keras",)),
    "program": (lambda file: write_zip(file, "m/archive_format", "m/models/model.json"), "ExportedProgram", (".pt2",)),
    "script": (
        lambda file: write_zip(file, "m/data.pkl", "m/constants.pkl", "m/code/__torch__.py"),
        "TorchScript",
        (".pt", ".pth", ".jit", ".torchscript"),
    ),
    "photos": (lambda file: write_zip(file, "cat.jpg", "dog.jpg"), "cat.jpg", ()),
    "arrays": (write_arrays, "NumPy", ()),
    "HDF5": (write(b"\x89HDF\r\n\x1a\n" + bytes(64)), "HDF5", ()),
    "safetensors": (write(len(SAFETENSORS).to_bytes(8, "little") + SAFETENSORS + bytes(4)), "safetensors", ()),
    "GGUF": (write(b"GGUF\x03\x00\x00\x00"), "GGUF", ()),
    "page": (write(b"\n<!DOCTYPE html><html><body>Sign in</body></html>"), "web page", ()),
    "JSON": (write(b'{"error": "not found"}'), "JSON", ()),
    "gzip": (write(gzip.compress(b"model")), "gzip", ()),
    "tar": (write_tar, "tar", ()),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_it_really_is_is_named_under_every_other_suffix(tmp_path: Path, lie: str) -> None:
    writes, word, own = LIES[lie]
    for suffix in SUFFIXES:
        file = tmp_path / f"model{suffix}"
        writes(file)
        if suffix in own:
            found = content_of(file)
            assert found is not None
            assert suffix in found.suffixes
            continue
        with pytest.raises(FairlapError) as refused:
            opened(source_of(file), tmp_path)
        assert refused.value.code == ("E_MODEL_FILE" if suffix == ".onnx" else "E_SOURCE")
        assert word in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_suffix_that_is_not_known_is_answered_with_what_the_file_is(tmp_path: Path) -> None:
    masked_lookup(tmp_path / "model.bin")
    with pytest.raises(InvalidRequest, match="ONNX") as refused:
        find(str(tmp_path / "model.bin"))
    assert ".onnx" in str(refused.value)


@pytest.mark.parametrize("named", ["net.pdmodel", "net.pdiparams", "net.json", ""])
def test_a_program_of_paddle_is_answered_with_how_to_convert_it(tmp_path: Path, named: str) -> None:
    """Version 3 writes its program as JSON; a folder is named for all of them."""
    program = named if named.endswith((".pdmodel", ".json")) else "net.pdmodel"
    (tmp_path / program).write_bytes(b'{"base_code":{}}')
    (tmp_path / "net.pdiparams").write_bytes(bytes(64))
    with pytest.raises(InvalidRequest) as refused:
        find(f"{tmp_path}/{named}")
    said = str(refused.value)
    assert f"--model_filename {program} --params_filename net.pdiparams" in said
    assert "\n" not in said


def test_json_without_weights_beside_it_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_bytes(b'{"base_code":{}}')
    (tmp_path / "other.pdiparams").write_bytes(bytes(64))
    found = content_of(tmp_path / "net.json")
    assert found is not None
    assert found.what == "JSON"


def test_weights_that_were_not_fetched_are_found_where_they_are_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "net.xml").write_text('<?xml version="1.0"?>\n<net name="m" version="11"></net>')
    (tmp_path / "net.bin").write_bytes(POINTER)
    with pytest.raises(FairlapError, match=r"net\.bin") as refused:
        opened(source_of(tmp_path / "net.xml"), tmp_path)
    assert refused.value.code == "E_SOURCE"


def test_a_model_under_its_own_name_is_opened(tmp_path: Path) -> None:
    _, found = opened(source_of(masked_lookup(tmp_path / "model.onnx"), BOUND), tmp_path)
    assert found.spec.outputs
