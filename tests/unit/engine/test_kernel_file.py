"""Kernels of PTX files: loaded, given their arguments, launched natively, and refused with a reason."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.engine import measure
from fairlap.engine.cuda.kernel_file import Launch, extent, kernel_arguments, loaded_kernels
from fairlap.engine.measurement import CallableRaised, KernelOfCall
from fairlap.errors import InvalidRequest
from fairlap.scenarios.callables.device_timing import OnDevice, kernel_files, kernels_of
from fairlap.scenarios.callables.in_process import compare

SAXPY = str(Path(__file__).parents[3] / "docs/examples/gpu/saxpy.ptx")
ARGUMENTS = kernel_arguments("buffer:4KiB,buffer:4KiB,f32:2.5,i32:1024")
LAUNCH = Launch(grid=(4, 1, 1), block=(256, 1, 1), arguments=ARGUMENTS)


@on_fakes
def test_a_kernel_is_launched_natively_and_timed_on_its_stream() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_kernel_duration(b"saxpy", 7000)
    name = f"{SAXPY}:saxpy"
    with kernel_files([name], LAUNCH, OnDevice()) as timed:
        result = measure(timed.callables[name], name=name, samples=20, warmup=2, calls_per_sample=1, **timed.options)
        assert np.allclose(result.device_span_ns, 7000, atol=0.01)
        assert result.settings["call"] == "native"
        kernels = kernels_of(timed, name)
        assert kernels.by_name.keys() == {"saxpy"}
        assert kernels.document().kernels["saxpy"] == KernelOfCall(per_call=1.0, ns_per_call=7000.0)
        assert machine.cuda.fake_cuda_outstanding(b"device_allocations") == 2
    del timed, result
    assert machine.outstanding() == 0


@on_fakes
def test_wall_time_of_a_kernel_includes_its_end() -> None:
    machine = Machine()
    name = f"{SAXPY}:saxpy"
    with kernel_files([name], LAUNCH, OnDevice(method="wall")) as timed:
        before = machine.cuda.fake_cuda_call_count(b"cuCtxSynchronize")
        options = {"samples": 20, "warmup": 0, "calls_per_sample": 1, "done": timed.done[name]}
        result = measure(timed.callables[name], name=name, **options)
        assert result.headline.name == "wall_ns"
        assert machine.cuda.fake_cuda_call_count(b"cuCtxSynchronize") == before + 20


@on_fakes
def test_two_kernels_are_compared_by_the_same_quantity() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_kernel_duration(b"saxpy", 8000)
    machine.cuda.fake_cuda_set_kernel_duration(b"nothing", 4000)
    names = [f"{SAXPY}:saxpy", f"{SAXPY}:nothing"]
    with kernel_files(names, LAUNCH, OnDevice()) as timed:
        found = compare(timed.callables, blocks=6, seconds=0.005, **timed.options)
    assert found.between(*names).ratio == pytest.approx(2.0, rel=1e-3)


@on_fakes
def test_a_cold_cache_and_a_graph_go_with_kernel_files_too() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_kernel_duration(b"saxpy", 7000)
    name = f"{SAXPY}:saxpy"
    for wanted in (OnDevice(cache="cold"), OnDevice(graph=True)):
        with kernel_files([name], LAUNCH, wanted) as timed:
            result = measure(timed.callables[name], samples=10, warmup=2, calls_per_sample=1, **timed.options)
        assert np.allclose(result.device_span_ns, 7000, atol=0.01)
        assert ("flushed" in result.settings["cache"]) == (wanted.cache == "cold")
        assert ("graph" in result.settings) == wanted.graph


@on_fakes
def test_a_launch_that_fails_is_named() -> None:
    Machine()
    name = f"{SAXPY}:saxpy"
    too_many = Launch(block=(2048, 1, 1), arguments=ARGUMENTS)
    with loaded_kernels([name], too_many, 0) as loaded, pytest.raises(CallableRaised, match="CUDA_ERROR_INVALID_VALUE"):
        measure(loaded.launches[name], stream=loaded.stream, samples=5)


@on_fakes
def test_a_kernel_that_is_not_in_the_file_is_refused_with_those_that_are() -> None:
    machine = Machine()
    with pytest.raises(InvalidRequest, match="saxpy, nothing"), loaded_kernels([f"{SAXPY}:sgemm"], LAUNCH, 0):
        pass
    with pytest.raises(InvalidRequest, match="cannot read"), loaded_kernels(["no-such.ptx:f"], LAUNCH, 0):
        pass
    assert machine.outstanding() == 0


@on_fakes
def test_a_file_that_the_driver_refuses_is_named_and_nothing_is_left() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_driver_version(9000)  # which reads no PTX 6.3
    with pytest.raises(InvalidRequest, match="cannot be loaded"), loaded_kernels([f"{SAXPY}:saxpy"], LAUNCH, 0):
        pass
    assert machine.outstanding() == 0


def test_arguments_are_packed_as_the_kernel_takes_them() -> None:
    found = kernel_arguments("f32:2.5, i32:-7,u64:0xff,f16:1,buffer:2MiB,buffer:12")
    assert found == (struct.pack("<f", 2.5), struct.pack("<i", -7), struct.pack("<Q", 255), b"\x00\x3c", 2 << 20, 12)
    assert kernel_arguments("") == ()


@pytest.mark.parametrize(
    "text", ["f32", "f32:", "i32:2.5", "i8:300", "x:1", "buffer:0", "buffer:4 MB", "buffer", "f64:one", "u32:-1"]
)
def test_an_argument_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        kernel_arguments(text)


def test_extents_have_one_to_three_sizes() -> None:
    assert [extent(text) for text in ("128", "16x8", "2x3x4")] == [(128, 1, 1), (16, 8, 1), (2, 3, 4)]
    for wrong in ("", "0", "1x1x1x1", "-1", "a"):
        with pytest.raises(InvalidRequest):
            extent(wrong)
