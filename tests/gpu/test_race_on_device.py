"""Each framework that takes a GPU races on it: its answer is right, its headline is wall time, its stream is found."""

from __future__ import annotations

import importlib.util
from typing import Literal

import pytest
from one_block import processes_of_one_block

pytest.importorskip("msgspec", reason="races need msgspec")
pytest.importorskip("scipy", reason="verdicts need SciPy")

from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult

pytestmark = pytest.mark.usefixtures("frameworks")

STREAMS = {
    "torch": "torch.cuda.current_stream",
    "torch:compile": "torch.cuda.current_stream",
    "jax": "jax.experimental.buffer_callback",
    "tensorflow:graph": "CUPTI",
    "onnxruntime": "user_compute_stream",
    "paddle": "paddle.device.current_stream",
}
"""How the stream of each is found; docs/how-to/race-on-a-gpu.md."""


def process_of(
    name: str, model: str, mode: Literal["infer", "grad"] = "infer", *, min_memory: bool = False
) -> ProcessResult:
    if importlib.util.find_spec(name.partition(":")[0]) is None:
        pytest.skip(f"{name} is not here")
    options = {"device": "cuda:0", "min_memory": min_memory}
    return processes_of_one_block(name, Work(model, 8, mode), threads=2, seconds=0.2, **options)[name]


def finished_process_of(
    name: str, model: str, mode: Literal["infer", "grad"] = "infer", *, min_memory: bool = False
) -> ProcessResult:
    process = process_of(name, model, mode, min_memory=min_memory)
    if process.outcome == "unsupported":
        pytest.skip(process.message)  # a build without CUDA
    assert process.outcome == "finished", process.message
    return process


@pytest.mark.parametrize("model", ["mlp", "convnet"])
@pytest.mark.parametrize("name", STREAMS)
def test_a_model_runs_right_on_the_device_and_is_timed_there(name: str, model: str) -> None:
    process = finished_process_of(name, model)
    assert max(error.distance for error in process.errors) < 1e-4  # TF32 would leave 1e-3
    assert process.headline_quantity == "wall_ns"


@pytest.mark.parametrize("name", STREAMS)
def test_the_work_of_a_framework_runs_on_the_stream_that_is_found(name: str) -> None:
    process = finished_process_of(name, "convnet")
    span = process.timings.get("device_span_ns")
    assert span is not None, process.untimed
    assert STREAMS[name] in span.method
    assert not {"W_OTHER_STREAMS", "W_WORK_ELSEWHERE"} & {warning.code for warning in process.warnings}
    assert span.p50_ns <= process.headline_ns
    if "kernel_sum_ns" in process.timings:
        assert 0 < process.timings["kernel_sum_ns"].p50_ns <= 1.1 * span.p50_ns


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "onnxruntime"])
def test_gradients_are_right_on_the_device(name: str) -> None:
    finished_process_of(name, "mlp", "grad")


LIVE = {"torch", "jax", "tensorflow:graph", "paddle"}  # frameworks whose allocator reports its use


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow:graph", "onnxruntime", "paddle"])
def test_memory_of_the_device_has_its_layers_or_says_why_not(name: str) -> None:
    process = finished_process_of(name, "convnet")
    assert process.memory.bytes["driver"] > 2**20
    if name in LIVE:
        assert process.memory.bytes["driver"] >= process.memory.bytes["allocator_live_peak"] > 0
    else:
        assert process.memory.absent["allocator_live_peak"]
    if name == "torch":
        assert process.memory.bytes["allocator_reserved_peak"] >= process.memory.bytes["allocator_live_peak"]
        assert process.memory.bytes["allocator_live_peak_until_ready"] > 0


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow:graph", "onnxruntime", "paddle"])
def test_the_smallest_memory_of_the_device_is_found_by_the_frameworks_own_limit(name: str) -> None:
    process = finished_process_of(name, "convnet", min_memory=True)  # a large model would take many minutes
    found = process.smallest_memory
    assert found is not None
    assert found.bytes is not None, found.why
    assert 2**20 < found.bytes < 8 * 2**30
    assert found.limit


@pytest.mark.parametrize("name", ["torch"])
def test_the_energy_of_the_board_is_read_during_the_work(name: str) -> None:
    process = finished_process_of(name, "convnet")
    assert process.energy is not None, process.energy_absent
    board = next(each for each in process.energy.read if each.sensor.startswith("nvml:"))
    assert board.joules is not None, board.why
    assert 10 < board.joules / process.energy.seconds < 2000  # watts
