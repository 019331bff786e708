"""ONNX Runtime's adapter on a GPU, with providers that stand in for CUDA's and TensorRT's and a fake driver.

Its graphs are those that the real providers would get, and its answers are checked as a race checks them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import onnx
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.frameworks.contract import Contestant, Settings, Unsupported
from fairlap.frameworks.runtimes.onnxruntime import OnnxRuntime
from fairlap.models.arrays import hash_of
from fairlap.race.equal_work.answers import array_errors, require_settings
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.request.work import Precision, Work
from frameworks_on_fakes import onnxruntime_on_cuda as ort

pytestmark = pytest.mark.sanitized
BATCH = 4


class OnGpu:
    """One fake GPU, with ONNX Runtime on it."""

    def __init__(self) -> None:
        self.gpu = Machine()
        self.ort = ort.Machine(lambda stream, ns: self.gpu.kernel(ns, "run", stream), self.gpu.cuda.cuStreamSynchronize)
        self.phases: list[str] = []

    def prepared(self, precision: Precision, variant: str = "") -> tuple[Contestant, Materials]:
        materials = materials_for(Work("mlp", BATCH, precision=precision), 0)
        work = materials.workload("inputs")
        if precision == "int8":
            work = _calibrated(work, materials)

        def phase(name: str) -> Any:
            self.phases.append(name)
            return nullcontext()

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "onnxruntime", self.ort.module())
            return OnnxRuntime().prepare(work, Settings(1, variant, device="cuda:0"), phase), materials

    def require_right(self, contestant: Contestant, materials: Materials, pending: int = 1) -> None:
        """Answer two inputs, each before the device is done, and compare both with the reference."""
        for which in ("inputs", "changed"):
            with _as_onnxruntime(self.ort):
                call = contestant.bind(materials.workload(which).inputs)
            result = call()
            assert self.gpu.cuda.fake_cuda_pending_work(0) == pending  # it has returned when its work is enqueued
            self.gpu.cuda.cuCtxSynchronize()
            found = array_errors(materials, contestant.outputs(result), which, "before")
            assert all(error.right for error in found), found


@contextmanager
def _as_onnxruntime(machine: ort.Machine) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", machine.module())
        yield


def _calibrated(work: Any, materials: Materials) -> Any:
    from dataclasses import replace

    return replace(work, calibration=tuple(materials.calibration_files))


@on_fakes
def test_half_precisions_answer_within_their_class_from_weights_of_their_type() -> None:
    for precision in ("fp16", "bf16"):
        for variant in ("", "tensorrt"):
            machine = OnGpu()
            contestant, materials = machine.prepared(precision, variant)
            machine.require_right(contestant, materials)
            require_settings(contestant.in_force, 1, precision)
            assert contestant.in_force["precision"] == precision
            assert hash_of(contestant.weights()) == materials.weights_hash
            assert machine.phases == ["import", "build", "convert", "compile"]


@on_fakes
def test_tensorrt_keeps_the_types_of_the_graph_and_leaves_the_rest_to_cuda_on_the_same_stream() -> None:
    """ONNX Runtime makes a strongly typed network where no option for fp16 or int8 is given."""
    machine = OnGpu()
    machine.ort.not_in_tensorrt = {"LayerNormalization"}
    contestant, _ = machine.prepared("bf16", "tensorrt")
    [session] = machine.ort.sessions
    given = session.get_provider_options()
    assert list(given) == [ort.TENSORRT, ort.CUDA, ort.CPU]
    assert not any(option.endswith(("16_enable", "int8_enable")) for option in given[ort.TENSORRT])
    assert given[ort.TENSORRT]["user_compute_stream"] == given[ort.CUDA]["user_compute_stream"] != "0"
    assert contestant.in_force["nodes"] == "Tensorrt 5, CUDA 1"


@on_fakes
def test_a_node_of_the_converted_graph_that_would_run_on_the_cpu_is_refused() -> None:
    machine = OnGpu()
    machine.ort.on_host = {"Gelu"}
    with pytest.raises(Unsupported) as refused:
        machine.prepared("bf16", "tensorrt")
    assert "2 Gelu" in str(refused.value)


@on_fakes
def test_a_cuda_graph_is_captured_for_each_binding_before_it_is_timed() -> None:
    machine = OnGpu()
    contestant, materials = machine.prepared("fp16", "graph")
    machine.require_right(contestant, materials, pending=0)
    [session] = machine.ort.sessions
    assert session.get_provider_options()[ort.CUDA]["enable_cuda_graph"] == "1"
    assert list(session.graphs) == ["1", "2"]


@on_fakes
def test_int8_is_refused_with_cuda_whose_products_are_in_float() -> None:
    with pytest.raises(Unsupported, match="onnxruntime:tensorrt"):
        OnGpu().prepared("int8")


@on_fakes
def test_int8_with_tensorrt_is_symmetric_without_integer_biases_and_right() -> None:
    """As TensorRT's guide to explicit quantization asks: zero points of 0, int8, and both operands dequantized."""
    machine = OnGpu()
    contestant, materials = machine.prepared("int8", "tensorrt")
    machine.require_right(contestant, materials)
    require_settings(contestant.in_force, 1, "int8")
    assert contestant.in_force["precision"].startswith("unknown")
    assert contestant.in_force["quantized"].startswith("3 of 3 products")
    [session] = machine.ort.sessions
    graph = session._model.graph
    held = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    points = [held[node.input[2]] for node in graph.node if node.op_type == "QuantizeLinear"]
    assert points
    assert all((point == 0).all() and point.dtype == "int8" for point in points)
    assert not any(array.dtype == "int32" for array in held.values())


@on_fakes
def test_what_a_processor_cannot_do_is_refused_before_anything_is_imported() -> None:
    work = materials_for(Work("mlp", BATCH, precision="fp16"), 0).workload("inputs")
    with pytest.raises(Unsupported, match="no fp16 on a CPU"):
        OnnxRuntime().prepare(work, Settings(1), lambda _: nullcontext())
