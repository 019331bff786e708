"""What races model files of packages unpacks nothing outside of its folder, and reads the line that is to be pasted."""

from __future__ import annotations

import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from fairlap.models.onnx_import.errors import DimensionsUnbound
from fairlap.models.sources.sizes import bound_shapes
from fairlap.request.fields.source import Source, shapes_in

from . import wild_models

OUTSIDE = ("../outside.onnx", "/tmp/outside.tflite", "net/../../variables/x")
WANTED = [
    "net/model.onnx",
    "net/model.onnx.data",
    "net/a.pt",
    "net/saved/saved_model.pb",
    "net/saved/variables/v.index",
]
NAMES = (*WANTED, *OUTSIDE, "net/code.py")


def test_models_alone_are_unpacked_and_within_the_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "net-1-py3-none-any.whl", "w") as wheel:
        for name in NAMES:
            wheel.writestr(name, name)
    with tarfile.open(tmp_path / "net-1.tar.gz", "w:gz") as source:
        for name in NAMES:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            source.addfile(member, BytesIO(name.encode()))
    for archive in tmp_path.iterdir():
        found = {name: content.decode() for name, content in wild_models.members(archive)}
        assert found == {name: name for name in WANTED}
        assert [name for name, _ in wild_models.members(archive, "net/saved/")] == WANTED[3:]


def test_the_line_of_a_refusal_binds_the_sizes_that_are_open() -> None:
    declared = {"image": (None, 3, None, None), "scale": (2,), "ids": (None, 4)}
    source = Source("m.tflite", "m.tflite")
    with pytest.raises(DimensionsUnbound) as refused:
        bound_shapes(declared, source, {})
    line = wild_models.pasted(str(refused.value))
    assert line[0] == "--shapes"
    bound = bound_shapes(declared, Source("m.tflite", "m.tflite", shapes=shapes_in(line[1])), {})
    assert bound == {"image": (1, 3, 128, 128), "scale": (2,), "ids": (1, 4)}


def test_a_refused_file_has_a_row_with_the_code(tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_bytes(b"\x80\x02}q\x00.")
    found = wild_models.tried("net==1", tmp_path / "weights.pt", tmp_path)
    assert found.races == 0
    assert "E_SOURCE" in found.row
    assert found.row.count("|") == len(wild_models.ON) + 4
