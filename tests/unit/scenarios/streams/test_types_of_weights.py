"""A served model's row says in which types its files hold its weights, whatever is in them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.gguf_files.gguf_header import _TYPES
from fairlap.scenarios.streams.started.types_of_weights import types_of_weights


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def tensor(name: str, kind: int, *sizes: int) -> bytes:
    return string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, 0)


def gguf(path: Path, *tensors: bytes, count: int | None = None) -> str:
    key = string("general.name") + struct.pack("<I", 8) + string("m")
    counts = struct.pack("<QQ", len(tensors) if count is None else count, 1)
    path.write_bytes(b"GGUF" + struct.pack("<I", 3) + counts + key + b"".join(tensors))
    return str(path)


def test_a_gguf_file_has_the_types_of_most_of_its_weights(tmp_path: Path) -> None:
    weights = (tensor("a", 12, 256, 300), tensor("b", 14, 256, 100), tensor("norm", 0, 256))
    assert types_of_weights(gguf(tmp_path / "m.gguf", *weights)) == "Q4_K and Q6_K"
    assert types_of_weights(gguf(tmp_path / "new.gguf", tensor("a", 99, 4))) == "type 99"


def test_a_folder_has_those_of_its_safetensors_files(tmp_path: Path) -> None:
    safetensors.write(
        tmp_path / "1.safetensors", {"a": np.zeros((64, 64), np.float16), "norm": np.zeros(8, np.float32)}
    )
    safetensors.write(tmp_path / "2.safetensors", {"b": np.zeros((64, 64), np.float16)})
    assert types_of_weights(str(tmp_path)) == "F16"


def test_what_cannot_be_read_has_none(tmp_path: Path) -> None:
    broken = tmp_path / "1.safetensors"
    for content in (b"", b"\x10", struct.pack("<Q", 2**60) + b"{}", struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 9)):
        broken.write_bytes(content)
        assert types_of_weights(str(tmp_path)) == ""
    assert types_of_weights(str(tmp_path / "nothing")) == ""
    for weights, count in (([], 9), ([tensor("a", 0, 1)], 2**63), ([struct.pack("<QI", 0, 2**31)], 1)):
        assert types_of_weights(gguf(tmp_path / "m.gguf", *weights, count=count)) == ""
    (tmp_path / "m.gguf").write_bytes(b"GGML" + bytes(100))
    assert types_of_weights(str(tmp_path / "m.gguf")) == ""


def test_types_have_the_numbers_of_llama_cpps_own_package() -> None:
    package = pytest.importorskip("gguf", reason="`make test` installs it and runs this")
    theirs = {each.value: each.name for each in package.GGMLQuantizationType}
    assert {number: name for number, name in _TYPES.items() if theirs.get(number) != name} == {}
