"""What a feeder refuses: settings, sources and devices that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.engine import Feeder, RawFile, _native
from fairlap.engine.feeding.feeder import require_readable_npy
from fairlap.errors import InvalidRequest, NotAvailable

_SAMPLES = np.zeros((10, 3))


def test_a_mapped_array_is_refused_since_its_file_could_shrink(tmp_path: Path) -> None:
    np.save(tmp_path / "samples.npy", np.zeros((10, 3)))
    mapped = np.load(tmp_path / "samples.npy", mmap_mode="r")
    for array in (mapped, np.asarray(mapped)[2:]):
        with pytest.raises(InvalidRequest, match="path"):
            Feeder(array, batch=2)


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("batch", [0, 2.0, np.arange(3), True]),
        ("slots", [0, 65_537]),
        ("threads", [0, 1025]),
        ("scale", [10**400, 2.0]),
        ("offset", [float("nan")]),
        ("seed", [2**63, 10**5000, -1]),
        ("last", ["some"]),
        ("layout", ["nchw", "nhwc_to_nchw"]),
        ("dtype", ["float32", "float31"]),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_name(setting: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidRequest) as refused:
            Feeder(_SAMPLES, **({"batch": 2} | {setting: value}))
        assert setting in str(refused.value) or str(value) in str(refused.value)
        assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (_SAMPLES.T, "ascontiguousarray"),
        (np.zeros((10, 3), ">f4"), "swapped"),
        (np.zeros((0, 3)), "no samples"),
        (np.zeros((10, 3), complex), "complex128"),
        ([1, 2, 3], "NumPy"),
        ("/nowhere/samples.npy", "/nowhere/samples.npy"),
        ("\0", r"\\x00"),
        ("\udcff.npy", "UTF-8"),
        (RawFile(5, "float32"), "path"),  # type: ignore[arg-type]
        (RawFile("a", np.float32), "dtype"),  # type: ignore[arg-type]
        (RawFile("a", "int8", 10), "sample_shape"),  # type: ignore[arg-type]
        (RawFile("a", "int8", (0,)), "sample_shape"),
        (RawFile("a", "int8", offset=-1), "offset"),
        (RawFile("a", "int8", samples=0), "samples"),
    ],
)
def test_what_cannot_be_fed_is_refused_with_its_name(source: Any, part: str) -> None:
    with pytest.raises(InvalidRequest, match=part):
        Feeder(source, batch=2)


def test_a_batch_larger_than_memory_or_than_what_is_left_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        Feeder(_SAMPLES, batch=2**60)
    with pytest.raises(InvalidRequest):
        Feeder(_SAMPLES, batch=20, last="drop")


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.asfortranarray(np.zeros((4, 3))), "fortran_order"),
        (np.zeros((4, 3), ">f4"), "'>f4'"),
        (np.float32(1), "()"),
        (np.array([{}, 1], object), "'|O'"),
        (np.zeros((4, 0)), "shape"),
        (np.zeros((0, 3)), "samples"),
    ],
)
@pytest.mark.parametrize("read", [lambda path: Feeder(path, batch=2), require_readable_npy])
def test_a_file_that_cannot_be_fed_is_named_once_with_the_reason(
    tmp_path: Path, array: Any, says: str, read: Callable[[Path], object]
) -> None:
    np.save(tmp_path / "samples.npy", array)
    with pytest.raises(InvalidRequest) as refused:
        read(tmp_path / "samples.npy")
    assert says in str(refused.value)
    assert str(refused.value).count(str(tmp_path / "samples.npy")) == 1


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", "CUDA", "cpu:0", 0, None])
def test_a_device_that_is_none_is_refused_with_what_there_is(device: Any) -> None:
    with pytest.raises(InvalidRequest, match="cuda:N"):
        Feeder(np.zeros((10, 3)), batch=2, device=device)


def test_a_machine_without_a_driver_is_reported_so() -> None:
    if not _native.cuda_absent_because():
        pytest.skip("this machine has a CUDA driver; it runs where there is none")
    with pytest.raises(NotAvailable, match="libcuda"):
        Feeder(np.zeros((10, 3)), batch=2, device="cuda:0")
