"""The roofs of a GPU, against the fake driver: a device whose speed is known has that speed as its roof."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.machine.hardware.device_roofs import (
    NUMBER_TYPES,
    kept_roofs_of_device,
    measured_on_device,
    roofs_of_device,
    working_sets,
)
from fairlap.machine.hardware.roofs import Roofs

_MIB, _GIB = 2**20, 2**30


def machine_of(capability: int) -> Machine:
    machine = Machine()
    machine.cuda.fake_cuda_set_instruction_rate.argtypes = (ctypes.c_char_p, ctypes.c_double)
    machine.cuda.fake_cuda_set_bandwidths.argtypes = (ctypes.c_double, ctypes.c_double)
    for attribute, value in ((75, capability // 10), (76, capability % 10)):
        machine.cuda.fake_cuda_set_device_attribute(0, attribute, value)
    return machine


@contextmanager
def empty_cache() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", f"{folder}/given")
        patch.setenv("XDG_CACHE_HOME", f"{folder}/user")  # whose roofs are read too
        yield Path(folder)


@on_fakes
def test_a_device_whose_speed_is_known_has_that_speed_as_its_roofs() -> None:
    machine = machine_of(90)
    machine.cuda.fake_cuda_set_instruction_rate(b"fma.rn.f32", 33e12)
    machine.cuda.fake_cuda_set_instruction_rate(b"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 0.24e12)
    machine.cuda.fake_cuda_set_bandwidths(5.5e12, 3.3e12)
    found = measured_on_device("cuda:0", seconds=0.05)
    assert found.operations_per_s["fp32"].value == pytest.approx(66e12, rel=1e-4)
    assert found.operations_per_s["bf16"].value == pytest.approx(0.24e12 * 4096, rel=1e-4)
    assert found.bytes_per_s["L2"].value == pytest.approx(5.5e12, rel=1e-4)
    assert found.bytes_per_s["memory"].value == pytest.approx(3.3e12, rel=1e-4)
    assert found.ridge("fp32") == pytest.approx(20, rel=1e-3)
    assert found.operations_per_s.keys() == found.instructions.keys() == set(NUMBER_TYPES) - {"fp4"}
    assert found.bytes_per_s.keys() == found.triad_instructions.keys()
    assert (found.threads, found.device, found.device_name) == (None, "cuda:0", "fairlap fake device 0")
    assert found.cache_bytes == {"L2": 50 * _MIB}
    assert found.absent.keys() == {"fp4"}
    for roof in (*found.operations_per_s.values(), *found.bytes_per_s.values()):
        assert 0 < roof.low <= roof.value <= roof.high
    assert msgspec.json.decode(msgspec.json.encode(found), type=Roofs) == found
    assert machine.outstanding() == 0


@on_fakes
def test_a_type_without_kernels_for_the_device_is_absent_with_the_reason() -> None:
    machine_of(75)
    assert {"tf32", "bf16", "fp8", "fp4"} == measured_on_device("cuda", seconds=0.01).absent.keys()
    machine_of(86)
    assert {"fp8", "fp4"} == measured_on_device("cuda", seconds=0.01).absent.keys()
    machine_of(101)
    found = measured_on_device("cuda", seconds=0.01)
    assert {"tf32", "fp16", "bf16", "fp8", "fp4", "int8"} == found.absent.keys()
    assert "10.1" in found.absent["bf16"]
    assert found.operations_per_s.keys() == {"fp32", "fp64"}


@on_fakes
def test_a_type_whose_sums_are_wrong_on_the_device_is_absent_with_their_number() -> None:
    machine = machine_of(90)
    machine.cuda.fake_cuda_set_wrong_sums(b"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16")
    found = measured_on_device("cuda", seconds=0.01)
    assert found.absent.keys() == {"bf16", "fp4"}
    assert str(132 * 2 * 128 * 128) in found.absent["bf16"]  # blocks, threads and sums of each
    assert found.operations_per_s.keys() == set(NUMBER_TYPES) - {"bf16", "fp4"}
    assert machine.outstanding() == 0


@on_fakes
def test_small_types_need_a_driver_that_can_assemble_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of e4m3 on sm_89 came with PTX 8.4, and that with CUDA 12.4 (PTX ISA, release history).

    Those of e2m1 in blocks with scales came for the family sm_120f with PTX 8.8, and that with CUDA 12.9.
    """
    for capability, version, absent in (
        (89, 12_030, {"fp8", "fp4"}),
        (89, 12_040, {"fp4"}),
        (90, 12_030, {"fp4"}),
        (120, 12_080, {"fp4"}),
        (121, 12_090, set[str]()),
    ):
        machine_of(capability)
        facts = SimpleNamespace(
            capability=capability, driver_cuda_version=version, cache_bytes=50 * _MIB, name="a device"
        )
        monkeypatch.setattr("fairlap.engine.cuda.roofs.device_facts", lambda _, facts=facts: facts)
        assert measured_on_device("cuda", seconds=0.01).absent.keys() == absent


@on_fakes
def test_without_an_assembler_there_is_no_roof_of_arithmetic_that_is_too_low() -> None:
    machine = machine_of(90)
    machine.cuda.fake_cuda_set_jit(0)
    with pytest.raises(Exception, match="JIT") as found:
        measured_on_device("cuda", seconds=0.01)
    assert found.value.code == "E_DEVICE"  # type: ignore[attr-defined]


@on_fakes
def test_a_device_with_little_memory_has_no_roof_of_it() -> None:
    machine = machine_of(86)
    machine.cuda.fake_cuda_set_device_memory.argtypes = (ctypes.c_int, ctypes.c_uint64)
    machine.cuda.fake_cuda_set_device_memory(0, 400 * _MIB)
    found = measured_on_device("cuda", seconds=0.01)
    assert found.bytes_per_s.keys() == {"L2"}
    assert "memory" in found.absent


@on_fakes
def test_a_device_is_measured_once_in_a_separate_process_and_then_read() -> None:
    machine = machine_of(90)
    with empty_cache():
        assert kept_roofs_of_device("cuda:0") is None
        found = roofs_of_device("cuda:0")
        assert found.operations_per_s["fp32"].value == pytest.approx(2e13, rel=1e-4)
        assert kept_roofs_of_device("cuda:0") == found
        assert roofs_of_device("cuda") == msgspec.structs.replace(found, device="cuda")
        assert machine.cuda.fake_cuda_call_count(b"cuLaunchKernel") == 0
        machine.cuda.fake_cuda_set_device_uuid(0, b"00000000000000000000000000000042")
        assert kept_roofs_of_device("cuda:0") is None


@on_fakes
def test_what_goes_wrong_in_that_process_is_the_reason() -> None:
    machine_of(90)
    with empty_cache(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(NotAvailable, match="could not be measured"):
            roofs_of_device("cuda:0")
        assert kept_roofs_of_device("cuda:0") is None


@on_fakes
def test_a_device_that_is_not_there_is_refused() -> None:
    machine_of(90)
    with pytest.raises(InvalidRequest) as found:
        roofs_of_device("cuda:3")
    assert found.value.code == "E_REQUEST"


def test_without_cuda_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.engine._native.cuda_absent_because", lambda: "there is no driver")
    with pytest.raises(NotAvailable) as found:
        roofs_of_device("cuda")
    assert found.value.code == "E_NOT_AVAILABLE"


def test_the_arrays_of_the_cache_fit_into_it_and_those_of_the_memory_do_not() -> None:
    assert working_sets(50 * _MIB, 79 * _GIB) == {"L2": 50 * _MIB // 4, "memory": 800 * _MIB}
    assert working_sets(4 * _MIB, 8 * _GIB) == {"L2": _MIB, "memory": 512 * _MIB}
    assert working_sets(4 * _MIB, _GIB) == {"L2": _MIB, "memory": 256 * _MIB}


def test_a_level_that_cannot_be_measured_is_absent() -> None:
    assert isinstance(working_sets(0, 8 * _GIB)["L2"], str)
    assert isinstance(working_sets(50 * _MIB, 512 * _MIB)["memory"], str)
