"""A small file of arrays that would fill the memory is refused by its headers."""

from __future__ import annotations

import io
import resource
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from fairlap.data.labelled.npz_file import npz_items
from fairlap.errors import FairlapError
from fairlap.models.array_files import numpy_files
from fairlap.models.array_files.numpy_files import why_not_read
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_inputs

_CHUNK = 2**26


def header_of(*shape: int, dtype: str = "<f4") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def a_bomb(path: Path, gigabytes: float) -> int:
    """Write a .npz of one array of zeros, deflated to a thousandth, and return its bytes when it is read."""
    chunks = int(gigabytes * 1e9 / _CHUNK)
    size = chunks * _CHUNK
    head = header_of(size // 4)
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = pack.compress(head) + pack.flush(zlib.Z_FULL_FLUSH)
    zeros = pack.compress(bytes(_CHUNK)) + pack.flush(zlib.Z_FULL_FLUSH)
    packed += zeros * chunks + pack.flush(zlib.Z_FINISH)
    name, whole = b"x.npy", len(head) + size
    of_both = struct.pack("<HHHHHIII", 20, 0, 8, 0, 0, 0, len(packed), whole)
    local = b"PK\3\4" + of_both + struct.pack("<HH", len(name), 0) + name
    central = b"PK\1\2" + struct.pack("<H", 20) + of_both + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    path.write_bytes(local + packed + central + end)
    return whole


def test_an_array_that_grows_a_thousandfold_is_refused_in_a_moment(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.npz"
    size, before = a_bomb(bomb, 3.2), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert bomb.stat().st_size < size / 500
    for read in (lambda: given_inputs(str(bomb), ""), lambda: labels_in(bomb, ["top1"]), lambda: npz_items(bomb, "")):
        began_s = time.process_time()
        with pytest.raises(FairlapError) as refused:
            read()
        assert refused.value.code in ("E_SOURCE_SIZE", "E_DATA")
        assert len(str(refused.value).splitlines()) == 1
        assert time.process_time() - began_s < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def test_arrays_that_do_not_fit_into_the_memory_that_is_free_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.zeros(10**6))
    assert why_not_read(tmp_path / "x.npy") == ""
    monkeypatch.setattr(numpy_files, "available_memory_bytes", lambda: 10**7)
    assert "8,000,000" in why_not_read(tmp_path / "x.npy")


@pytest.mark.parametrize("shape", [(2**40,), (2**62, 2**62), (10**18, 0, 1), (3, -1)])
def test_a_header_that_lies_ends_in_one_line(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(header_of(*shape) + bytes(100))
    if 0 in shape:
        assert given_inputs(str(path), "")[0][""].size == 0
        return
    with pytest.raises(FairlapError) as refused:
        given_inputs(str(path), "")
    assert len(str(refused.value).splitlines()) == 1


def test_many_zeros_in_a_small_file_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros((8, 3, 224, 224), np.float32))
    assert given_inputs(str(tmp_path / "x.npz"), "")[0]["x"].shape == (8, 3, 224, 224)


def test_an_array_of_objects_is_left_to_numpy_which_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array(["a", 1, None], dtype=object), allow_pickle=True)
    assert why_not_read(tmp_path / "labels.npy") == ""
    with pytest.raises(ValueError, match="allow_pickle"):
        np.load(tmp_path / "labels.npy")
