"""OpenVINO on the CPU. By default it uses bfloat16 where it can, so the precision is set and read back."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from fairlap.errors import cause_of
from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.adapter_parts.generation.openvino_generation import generation, with_states
from fairlap.frameworks.adapter_parts.onnx_graph import (
    encoder_of,
    files_of,
    graph_of,
    takes_other_sizes,
    weights_in,
    weights_of_both,
)
from fairlap.frameworks.adapter_parts.profiles.rebuilt_model import RebuiltModel, profiler_of_rebuilt
from fairlap.frameworks.adapter_parts.quantized.openvino_quantized import products_in, quantized
from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile
from fairlap.frameworks.adapter_parts.tensors.slot_views import SlotViews
from fairlap.frameworks.contract import (
    Contestant,
    Fed,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
    whole_option,
)
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.contract_parts.generation import answer_calls
from fairlap.frameworks.contract_parts.profiler import Profiler
from fairlap.machine.allocators import LIBRARIES
from fairlap.models.arrays import Arrays
from fairlap.models.draw import rounded_to
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

_CACHE = "FAIRLAP_OPENVINO_CACHE"
_HINTS: Mapping[Precision, str] = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "int8": "f32"}

_NO_MEMORY = "on the CPU OpenVINO reports no statistics of memory"


class OpenVino(Framework):
    name = "openvino"
    packages = ("openvino==2026.4.1", "onnx==1.23.2")
    packages_in: ClassVar = {"int8": ("nncf==3.4.0",)}
    module = "openvino"
    implementation = "onnx"
    generates = True
    options: ClassVar = {"hint": ("latency", "throughput"), "streams": (), "pinning": ("on", "off")}
    tunable: ClassVar = {"hint": ("throughput",), "pinning": ("off",)}
    precisions = ("fp32", "fp16", "bf16", "int8")
    no_precision: ClassVar = {
        "autocast": "its hint sets one type for all operations",
        "fp8": "NNCF rounds to it, and a CPU multiplies in wider types",
        "tf32": "it runs on the CPU here",
    }

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        kept = {_CACHE: settings.cache_folder} if settings.cache_folder else {}
        # oneTBB loads hwloc such that it frees with the C library what another allocator gave (oneTBB issue 1645).
        other = settings.options.get("allocator") in LIBRARIES
        return {"OPENVINO_TELEMETRY": "0", **kept, **({"TBB_ENABLE_SANITIZERS": "1"} if other else {})}

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        return files_of(work, cls.name)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        hints = _hints_in(wanted)
        with phase("import"):
            import openvino
        self._version = str(openvino.__version__).partition("-")[0]  # without the build
        core = openvino.Core()
        if work.precision.upper() not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise Unsupported(f"openvino has no {work.precision} on this CPU: it lacks the instructions for it")
        # The graph is float32 in any precision; OpenVINO casts inside.
        weights = {name: rounded_to(work.precision, array) for name, array in work.weights.items()}
        with phase("build"):
            graph = graph_of(work, weights, self.name)
            model = _converted(core, graph, work)
            if work.spec.continuation:
                with_states(model)
        made: QuantizedFile | None = None
        if work.precision == "int8":
            with phase("convert"):
                made = quantized(work, model)
            model = core.read_model(made.file)
        properties = {
            **hints,
            "INFERENCE_NUM_THREADS": wanted.threads,
            "INFERENCE_PRECISION_HINT": _HINTS[work.precision],
        }
        with phase("compile"):
            cached = {"CACHE_DIR": os.environ[_CACHE]} if _CACHE in os.environ else {}
            compiled = core.compile_model(model, "CPU", {**properties, **cached})
            of_prompt = encoder_of(work, weights, self.name)
            read = core.read_model(of_prompt) if isinstance(of_prompt, bytes) and of_prompt else of_prompt
            encoder = core.compile_model(read, "CPU", {**properties, **cached}) if of_prompt else None
        if work.spec.continuation:
            return Contestant(
                **answer_calls(work, generation(compiled, encoder)),
                weights=partial(_weights, work, partial(weights_of_both, graph, of_prompt, weights)),
                in_force=_in_force(compiled),
                no_memory_because=_NO_MEMORY,
            )
        return Contestant(
            bind=partial(_bind, compiled),
            done=None,
            outputs=partial(_answers, work),
            weights=dict if made else partial(_weights, work, partial(weights_in, graph, weights)),
            in_force=_in_force(compiled) | (_integers_in(compiled) if made else {}),
            quantization=made.quantization if made else None,
            no_memory_because=_NO_MEMORY,
            fed=Fed(operator.attrgetter("pointer"), _runner(work, compiled)),
            profiler=_profiler(lambda: core.compile_model(model, "CPU", {**properties, "PERF_COUNT": True})),
            compilation=partial(
                _compilation, work, core, graph if made is None else made.file, compiled, partial(_bind, compiled)
            ),
        )


def _converted(core: Any, graph: Any, work: Workload) -> Any:
    try:
        return core.read_model(graph)
    except RuntimeError as error:
        if "OpConversionFailure" not in str(error):
            raise
        raise Unsupported(f"openvino cannot run {work.spec.name}: {cause_of(error)}") from None


def _profiler(compile_counted: Callable[[], Any]) -> Profiler:
    def counted_model() -> RebuiltModel:
        from fairlap.frameworks.adapter_parts.profiles.openvino_profile import CountedModel

        return CountedModel(compile_counted, _request_and_run)

    return profiler_of_rebuilt("openvino counters", counted_model)


def _compilation(
    work: Workload, core: Any, graph: bytes | str | Path, compiled: Any, bind: Callable[[Arrays], Callable[[], Any]]
) -> Compilation:
    from fairlap.frameworks.adapter_parts.compilation.onnx_compilation import compilation_of_openvino

    any_size = bind if takes_other_sizes(work) else None
    return compilation_of_openvino(core.read_model(graph), compiled, bind, any_size)


def _bind(compiled: Any, inputs: Arrays) -> Callable[[], Any]:
    return _request_and_run(compiled, inputs)[1]


def _request_and_run(compiled: Any, inputs: Arrays) -> tuple[Any, Callable[[], Any]]:
    import openvino

    request = compiled.create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, openvino.Tensor(array))  # a copy: it cannot share read-only memory
    return request, partial(request.infer, share_outputs=True)


def _runner(work: Workload, compiled: Any) -> Callable[[Mapping[str, int]], Any]:
    import openvino

    request = compiled.create_infer_request()
    slots = SlotViews(work, partial(openvino.Tensor, shared_memory=True))

    def run(addresses: Mapping[str, int]) -> Any:
        for name, tensor in slots.at(addresses).items():
            request.set_tensor(name, tensor)
        return request.infer(share_outputs=True)

    return run


def _weights(work: Workload, read: Callable[[], Answers]) -> Answers:
    """Round them; a user's file has them unrounded."""
    return {name: rounded_to(work.precision, array) for name, array in read().items()}


def _answers(work: Workload, result: Any) -> Answers:
    return named_outputs(work.spec, [result[tensor.name].copy() for tensor in work.spec.outputs])


def _integers_in(compiled: Any) -> dict[str, str]:
    integers, floats = products_in(compiled)
    return {
        "precision": "int8" if integers else "fp32",
        "quantized": f"{integers} of {integers + floats} products in integers",
        "weights": "quantized; the answers alone prove that they are the same",
    }


def _in_force(compiled: Any) -> dict[str, str]:
    kind = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    names = {hint: precision for precision, hint in _HINTS.items() if precision != "int8"}
    return {
        "threads": str(compiled.get_property("INFERENCE_NUM_THREADS")),
        "precision": names.get(kind, kind),
        "streams": str(compiled.get_property("NUM_STREAMS")),
        "pinning": str(compiled.get_property("ENABLE_CPU_PINNING")).lower(),
        "performance_hint": _hint(compiled, "PERFORMANCE_HINT"),
        "execution_mode": _hint(compiled, "EXECUTION_MODE_HINT"),
        "weights": "read from the model's bytes; the compiled model cannot be asked",
    }


def _hints_in(wanted: Settings) -> dict[str, Any]:
    """One stream, unless the hint for throughput or ``streams`` says otherwise: a call has all threads to itself."""
    hint, pinning = wanted.options.get("hint", "latency"), wanted.options.get("pinning", "")
    streams = str(whole_option(wanted.options, "streams", wanted.threads))
    count = streams if "streams" in wanted.options or hint == "latency" else ""
    return {
        "PERFORMANCE_HINT": hint.upper(),
        **({"NUM_STREAMS": count} if count else {}),
        **({"ENABLE_CPU_PINNING": pinning == "on"} if pinning else {}),
    }


def _hint(compiled: Any, name: str) -> str:
    """Read a property, which some releases give as an enumeration's member, some as its name."""
    return str(compiled.get_property(name)).rpartition(".")[2].lower()
