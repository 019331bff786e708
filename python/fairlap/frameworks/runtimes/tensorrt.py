"""TensorRT itself: an engine of the ONNX graph, built in each process, and enqueued on a stream of ours."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from fairlap.errors import shortened
from fairlap.frameworks.adapter_parts.answers import Answers
from fairlap.frameworks.adapter_parts.onnx_graph import files_of, graph_of, weights_in
from fairlap.frameworks.adapter_parts.precisions.onnx_in_16_bits import NAMES, in_16_bits
from fairlap.frameworks.adapter_parts.quantized.onnxruntime_quantized import (
    quantized_for_gpu,
    quantized_products_in,
    quantized_to_fp8,
)
from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile
from fairlap.frameworks.adapter_parts.tensorrt_engines.building import BuildSettings, EngineBuild
from fairlap.frameworks.contract import (
    UNKNOWN,
    Contestant,
    DeviceStream,
    Framework,
    Phase,
    Settings,
    Unsupported,
    device_number,
    refuse_what_is_unknown,
)
from fairlap.models.workload import Workload
from fairlap.request.work import CALIBRATED, Precision

_FP8_SINCE = 89  # compute capability of Ada
_MIB = 2**20
_LEVELS = tuple(map(str, range(6)))
_NO_MEMORY = "TensorRT takes its memory from CUDA and counts none; activation_memory of its settings is its own plan"


class TensorRt(Framework):
    name = "tensorrt"
    packages = ("tensorrt==11.4.0.106", "onnx==1.23.2")
    packages_in: ClassVar = dict.fromkeys(CALIBRATED, ("onnxruntime==1.31.1",))  # whose tool quantizes
    module = "tensorrt"
    implementation = "onnx"
    options: ClassVar = {"workspace_mib": (), "optimization": _LEVELS, "timing_cache": ("on", "off")}
    tunable_on: ClassVar = {"cuda": {"optimization": ("4", "5")}}
    not_tuned: ClassVar = {"workspace_mib": "by default TensorRT may use all memory of the device"}
    devices = ("cuda",)
    precisions = ("fp32", "fp16", "bf16", "tf32", "int8", "fp8")
    no_precision: ClassVar = {"autocast": "its networks are strongly typed: the graph declares the type of each value"}

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        return files_of(work)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        settings = _build_settings(work.precision, wanted)
        _require_device(wanted.device, work.precision)
        with phase("import"):
            import tensorrt
        from fairlap.engine.cuda.device_arrays import work_on_device
        from fairlap.engine.cuda.device_completion import own_stream
        from fairlap.frameworks.adapter_parts.tensorrt_engines.calls import EngineCalls

        self._version = str(tensorrt.__version__)
        number = device_number(wanted.device)
        stream = own_stream(number)
        work_on_device(number)
        with phase("build"):
            graph = graph_of(work, work.weights)
        given = _Given(work, graph, phase)
        build = EngineBuild(tensorrt, settings)
        with phase("lower"):
            build.parse(given.graph)
        with phase("compile"):
            built = build.engine()
        calls = EngineCalls(tensorrt, built, work, stream, number)
        return Contestant(
            bind=calls.bind,
            done=None,
            outputs=calls.outputs,
            weights=partial(dict, given.weights),
            in_force={**built.in_force, **given.in_force(_precision(tensorrt, built.engine, settings))},
            quantization=given.quantized.quantization if given.quantized else None,
            stream=DeviceStream("execute_async_v3", lambda _call: stream),
            no_memory_because=_NO_MEMORY,
        )


class _Given:
    """The graph in the precision that is raced, and what is known of it."""

    def __init__(self, work: Workload, graph: bytes | str, phase: Phase) -> None:
        self.graph, self.quantized = graph, None
        self.weights: Answers = {}
        self._more: dict[str, str] = {}
        if work.precision in NAMES:
            with phase("convert"):
                narrow = in_16_bits(graph, work.precision)
            self.graph, self.weights, self._more = narrow.graph, narrow.weights(work.weights), narrow.in_force()
        elif work.precision in CALIBRATED:
            with phase("convert"):
                self.quantized = _quantized(work, graph)
            self.graph = str(self.quantized.file)
        else:
            self.weights = weights_in(graph, work.weights)

    def in_force(self, precision: str) -> dict[str, str]:
        if self.quantized is None:
            source = "read from the graph that was parsed; an engine cannot be asked"
            return {"precision": precision, **self._more, "weights": source}
        asked, floats = quantized_products_in(self.quantized.file)
        return {
            "precision": f"{UNKNOWN}: TensorRT fuses layers and reports the types of what they read",
            "quantized": f"{asked} of {asked + floats} products have quantized operands",
            "weights": "quantized; the answers alone prove that they are the same",
        }


def _quantized(work: Workload, graph: bytes | str) -> QuantizedFile:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise Unsupported("tensorrt is quantized by the package onnxruntime; install it") from None
    quantize = quantized_to_fp8 if work.precision == "fp8" else quantized_for_gpu
    return quantize(work, graph, str(onnxruntime.__version__))


def _build_settings(precision: Precision, wanted: Settings) -> BuildSettings:
    options = wanted.options
    workspace = options.get("workspace_mib")
    if workspace is not None and not (workspace.isdecimal() and int(workspace) > 0):
        raise Unsupported(f"workspace_mib must be a whole number of MiB (got {workspace})")
    return BuildSettings(
        threads=wanted.threads,
        tf32=precision == "tf32",
        workspace_bytes=None if workspace is None else int(workspace) * _MIB,
        level=int(options["optimization"]) if "optimization" in options else None,
        timing_cache=wanted.cache_folder if options.get("timing_cache", "on") == "on" else "",
    )


def _require_device(device: str, precision: Precision) -> None:
    from fairlap.engine import _native
    from fairlap.engine.cuda.roofs import device_facts

    if absent := _native.cuda_absent_because():
        raise Unsupported(f"tensorrt cannot run on {device}: there is no CUDA driver: {shortened(absent)}")
    if precision == "fp8" and (found := device_facts(device_number(device)).capability) < _FP8_SINCE:
        own, least = (f"{each // 10}.{each % 10}" for each in (found, _FP8_SINCE))
        raise Unsupported(f"{device} has compute capability {own}; products of fp8 need {least} or later")


def _precision(trt: Any, engine: Any, settings: BuildSettings) -> str:
    """By the types of the engine's inputs and outputs, which a strongly typed network takes from the graph."""
    names = [engine.get_tensor_name(number) for number in range(engine.num_io_tensors)]
    types = {engine.get_tensor_dtype(name) for name in names}
    if trt.DataType.HALF in types:
        return "fp16"
    if trt.DataType.BF16 in types:
        return "bf16"
    return "tf32" if settings.tf32 else "fp32"
