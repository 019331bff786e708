"""TensorRT's adapter with a package that has what NVIDIA's bindings export, on the second of two fake GPUs.

Its answers are checked as a race checks them. What TensorRT itself does to a graph is not shown.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.frameworks.adapter_parts.tensorrt_engines.building import types_of_layers
from fairlap.frameworks.contract import Contestant, Settings, Unsupported
from fairlap.frameworks.runtimes.tensorrt import TensorRt
from fairlap.models.arrays import hash_of
from fairlap.race.equal_work.answers import array_errors, require_settings
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.request.work import Precision, Work
from frameworks_on_fakes import tensorrt_on_cuda as trt

pytestmark = pytest.mark.sanitized
BATCH = 4
SECOND = 1
MIB = 2**20


class OnSecondGpu:
    def __init__(self) -> None:
        self.gpu = Machine()
        self.gpu.cuda.fake_cuda_set_device_count(2)
        self.trt = trt.Machine(lambda stream, ns: self.gpu.kernel(ns, "engine", stream), self._device_of_context)
        self.phases: list[str] = []

    def _device_of_context(self) -> int:
        found = ctypes.c_int(-1)
        assert self.gpu.cuda.cuCtxGetDevice(ctypes.byref(found)) == 0
        return found.value

    def of_capability(self, capability: int) -> None:
        for attribute, value in ((75, capability // 10), (76, capability % 10)):
            self.gpu.cuda.fake_cuda_set_device_attribute(SECOND, attribute, value)

    def prepared(self, precision: Precision, caches: str = "", **options: str) -> tuple[Contestant, Materials]:
        materials = materials_for(Work("mlp", BATCH, precision=precision), 0)
        work = replace(materials.workload("inputs"), calibration=tuple(materials.calibration_files))

        def phase(name: str) -> Any:
            self.phases.append(name)
            return nullcontext()

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "tensorrt", self.trt.module())
            wanted = Settings(3, device=f"cuda:{SECOND}", options=options, cache_folder=caches)
            return TensorRt().prepare(work, wanted, phase), materials


@on_fakes
def test_engines_answer_within_their_class_on_the_device_and_stream_that_they_were_given() -> None:
    for precision in ("fp32", "tf32", "fp16", "bf16"):
        machine = OnSecondGpu()
        contestant, materials = machine.prepared(precision)
        calls = {which: contestant.bind(materials.workload(which).inputs) for which in ("inputs", "changed")}
        for which in ("inputs", "changed", "inputs"):  # the calls share one context, and take turns
            result = calls[which]()
            assert machine.gpu.cuda.fake_cuda_pending_work(0) == 1  # it has returned when its work is enqueued
            machine.gpu.cuda.cuCtxSynchronize()
            errors = array_errors(materials, contestant.outputs(result), which, "before")
            assert all(error.right for error in errors), (precision, errors)
        require_settings(contestant.in_force, 3, precision)
        assert contestant.in_force["precision"] == precision
        assert (trt.BuilderFlag.TF32 in machine.trt.configs[0].flags) == (precision == "tf32")
        assert hash_of(contestant.weights()) == materials.weights_hash
        assert machine.trt.devices == {SECOND}
        assert machine.phases == [
            *("import", "build"),
            *(["convert"] if precision in ("fp16", "bf16") else []),
            *("lower", "compile"),
        ]


@on_fakes
def test_int8_has_both_operands_of_products_quantized_and_its_precision_is_unknown() -> None:
    machine = OnSecondGpu()
    contestant, materials = machine.prepared("int8")
    result = contestant.bind(materials.workload("inputs").inputs)()
    assert all(error.right for error in array_errors(materials, contestant.outputs(result), "inputs", "before"))
    assert contestant.in_force["quantized"] == "3 of 3 products have quantized operands"
    assert "read int8" in contestant.in_force["types_of_layers"]
    assert contestant.in_force["precision"].startswith("unknown")


@on_fakes
def test_fp8_has_both_operands_of_products_in_fp8_and_answers_within_its_class() -> None:
    machine = OnSecondGpu()
    machine.of_capability(89)
    contestant, materials = machine.prepared("fp8")
    result = contestant.bind(materials.workload("inputs").inputs)()
    errors = array_errors(materials, contestant.outputs(result), "inputs", "before")
    assert all(error.right for error in errors)
    assert min(error.distance for error in errors) > 1e-2  # three bits of mantissa
    require_settings(contestant.in_force, 3, "fp8")
    assert contestant.in_force["quantized"] == "3 of 3 products have quantized operands"
    assert "read fp8" in contestant.in_force["types_of_layers"]
    assert contestant.in_force["precision"].startswith("unknown")
    assert contestant.quantization is not None
    assert "fp8" in contestant.quantization.name
    assert machine.phases == ["import", "build", "convert", "lower", "compile"]


@on_fakes
def test_fp8_is_refused_on_a_gpu_that_has_no_products_of_it() -> None:
    machine = OnSecondGpu()
    machine.of_capability(86)
    with pytest.raises(Unsupported, match=r"8\.6"):
        machine.prepared("fp8")
    assert machine.phases == []


@on_fakes
def test_the_timing_cache_is_kept_between_processes_of_a_race_and_the_workspace_is_read_back(tmp_path: Path) -> None:
    machine = OnSecondGpu()
    first, _ = machine.prepared("fp32", str(tmp_path))
    assert "kept" in first.in_force["timing_cache"]
    again, _ = machine.prepared("fp32", str(tmp_path), workspace_mib="64", optimization="5")
    [searched, nothing] = machine.trt.searched
    assert (searched > 0, nothing) == (True, 0)
    assert machine.trt.configs[1].pools[trt.MemoryPoolType.WORKSPACE] == 64 * MIB
    assert again.in_force["workspace"] == "at most 64 MiB"
    assert (first.in_force["optimization"], again.in_force["optimization"]) == ("3", "5")
    machine.prepared("fp32", str(tmp_path), timing_cache="off")
    assert machine.trt.searched[-1] == searched


@on_fakes
def test_what_tensorrt_refuses_is_reported_in_its_own_words() -> None:
    machine = OnSecondGpu()
    machine.trt.build_fails = True
    with pytest.raises(Unsupported, match="Could not find any implementation"):
        machine.prepared("fp32")
    machine.trt.build_fails = False
    contestant, materials = machine.prepared("fp32")
    machine.trt.enqueue_fails = True
    with pytest.raises(RuntimeError, match="did not enqueue"):
        contestant.bind(materials.workload("inputs").inputs)()


@on_fakes
def test_a_size_of_the_workspace_that_is_none_is_refused() -> None:
    with pytest.raises(Unsupported, match="workspace_mib"):
        OnSecondGpu().prepared("fp32", workspace_mib="much")


@on_fakes
def test_nothing_of_the_device_is_left_by_a_contestant_that_is_gone() -> None:
    machine = OnSecondGpu()
    before = machine.gpu.outstanding()
    contestant, materials = machine.prepared("fp32")
    call = contestant.bind(materials.workload("inputs").inputs)
    del contestant, call
    assert machine.gpu.cuda.fake_cuda_outstanding(b"device_allocations") == 0
    assert machine.gpu.outstanding() - before <= 2  # the device stays current, and its context retained


def test_it_is_for_gpus_and_refused_before_anything_is_imported() -> None:
    work = materials_for(Work("mlp", BATCH), 0).workload("inputs")
    with pytest.raises(Unsupported, match="runs on cuda"):
        TensorRt().prepare(work, Settings(1), lambda _: nullcontext())
    assert "tensorrt" not in sys.modules


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["Float", "Half"], "1 read fp16, 1 read fp32"),
        (["Row major linear FP16 format", "BFloat16"], "1 read bf16, 1 read fp16"),
        (["Thirty-two wide channel vectorized row major Int8 format"], "1 read int8"),
        ([], ""),
    ],
)
def test_types_of_layers_are_read_in_both_ways_in_which_inspectors_write_them(texts: list[str], found: str) -> None:
    """The words are those of engines of TensorRT 8 to 11 in NVIDIA's documentation and in public reports."""
    import json

    layers = [{"Inputs": [{"Format/Datatype": text}]} for text in texts]
    assert types_of_layers(json.dumps({"Layers": layers})) == found
    assert types_of_layers(json.dumps({"Layers": ["name"]})) == types_of_layers("no JSON") == ""
