"""ONNX Runtime: a session whose inputs and outputs are bound to memory, so that nothing is copied around a call.

On a GPU it works on a stream of ours, and a run returns when all its work is enqueued.
"""

from __future__ import annotations

import operator
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.adapter_parts.devices.onnxruntime_on_device import (
    CUDA,
    GRAPH,
    RECORD_PLACES,
    TENSORRT,
    described_nodes,
    nodes_by_provider,
    refuse_work_on_cpu,
    run_options,
    why_not_loaded,
)
from fairlap.frameworks.adapter_parts.devices.onnxruntime_place import PROVIDERS, Place
from fairlap.frameworks.adapter_parts.onnx_graph import (
    encoder_of,
    files_of,
    graph_of,
    takes_other_sizes,
    weights_and_fp8_in,
    weights_of_both,
)
from fairlap.frameworks.adapter_parts.onnxruntime_bindings import answers_in, bind_any_size, runner_on_slots
from fairlap.frameworks.adapter_parts.onnxruntime_custom_ops import CUSTOM_OPS, custom_ops_in_force, register_custom_ops
from fairlap.frameworks.adapter_parts.precisions.onnx_in_16_bits import NAMES, in_16_bits
from fairlap.frameworks.adapter_parts.precisions.onnxruntime_memory import and_hand_through, call_of
from fairlap.frameworks.adapter_parts.profiles.rebuilt_model import RebuiltModel, profiler_of_rebuilt
from fairlap.frameworks.adapter_parts.quantized.onnxruntime_quantized import (
    operations_in,
    quantized,
    quantized_for_gpu,
    quantized_products_in,
)
from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile
from fairlap.frameworks.contract import (
    UNKNOWN,
    Contestant,
    DeviceStream,
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
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disabled": "ORT_DISABLE_ALL",
}
_SPINNING = {"on": "1", "off": "0"}
_SPINNING_KEY = "session.intra_op.allow_spinning"

_ON_CPU = "its kernels there compute in float32 or in integers"
_NO_MEMORY = "ONNX Runtime's Python interface reports no statistics of its arena"


class OnnxRuntime(Framework):
    name = "onnxruntime"
    of_several_works = ("",)
    packages = ("onnxruntime==1.31.1", "onnx==1.23.2")
    packages_on: ClassVar = {"cuda": ("onnxruntime-gpu[cuda,cudnn]==1.31.1", "onnx==1.23.2")}
    module = "onnxruntime"
    implementation = "onnx"
    generates = True
    variants = ("", "tensorrt", GRAPH)
    options: ClassVar = {
        "provider": tuple(PROVIDERS),
        "optimization": tuple(_LEVELS),
        "spinning": tuple(_SPINNING),
        "interop_threads": (),
        "arena": ("on", "off"),
        CUSTOM_OPS: (),
    }
    libraries = (CUSTOM_OPS,)
    tunable: ClassVar = {
        "spinning": ("off",),
        "interop_threads": ("{threads}",),
        "arena": ("off",),
        "optimization": ("extended", "basic"),
        "provider": ("dnnl", "xnnpack", "openvino"),  # those that this build lacks are refused
    }
    tunable_on: ClassVar = {"cuda": {"variant": ("tensorrt", GRAPH), "optimization": ("extended",)}}
    devices = ("cpu", "cuda")
    devices_of: ClassVar = {"tensorrt": ("cuda",), GRAPH: ("cuda",)}
    precisions = ("fp32", "fp16", "bf16", "tf32", "int8")
    no_precision: ClassVar = {
        "autocast": "a graph declares the type of each value",
        "fp8": "its kernels multiply in float32, and of TensorRT's engines it does not report the types: race tensorrt",
    }
    device_memory_limit = "gpu_mem_limit of the CUDA provider"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        # TensorRT would multiply in TF32, and ONNX Runtime has no option for that.
        exact = {"NVIDIA_TF32_OVERRIDE": "0"} if settings.variant == "tensorrt" else {}
        return {"ORT_DISABLE_TELEMETRY": "1", **exact}

    @classmethod
    def files(cls, work: Workload) -> tuple[Path, ...]:
        return files_of(work)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        _refuse(work, wanted)
        with phase("import"):
            import onnxruntime
        self._version = str(onnxruntime.__version__)
        options = _session_options(onnxruntime, wanted)
        place = Place.of(onnxruntime, wanted, work.precision, self.packages_on["cuda"][0])
        with phase("build"):
            built = graph_of(work, work.weights)
        given = _given(work, built, place, phase, self._version)
        graph = given.graph
        with phase("compile"):  # making the session is what optimizes the graph, and what builds TensorRT's engines
            session = _session(onnxruntime, graph, options, place)
            of_prompt = encoder_of(work, work.weights)
            encoder = _session(onnxruntime, of_prompt, options, place) if of_prompt else None
        if session.get_providers()[0] != place.provider:
            why = f": {why_not_loaded(onnxruntime, place.provider)}" if place.stream is not None else ""
            raise Unsupported(f"onnxruntime replaced {place.provider} by {session.get_providers()[0]}{why}")
        where = _nodes(session, wanted) if place.stream is not None else {}
        if work.spec.continuation:
            held = weights_of_both(graph, of_prompt, work.weights)
            return _generating(work, session, encoder, held, _in_force(session, wanted))
        # All bindings write to the same memory, so the outputs are those of the last call.
        held = place.memory.outputs(onnxruntime, work)
        found = {**_in_force(session, wanted), **where, **given.in_force}
        if given.quantized:
            found |= _integers_in(onnxruntime, given.quantized.file, options, place)

        def bind(inputs: Arrays) -> Callable[[], Any]:
            return _bind(session, work, held, place, inputs)

        def deal() -> None:
            nonlocal session
            session = _session(onnxruntime, graph, options, place)
            held.update(place.memory.outputs(onnxruntime, work))

        def any_size(inputs: Arrays) -> Callable[[], Any]:
            return bind_any_size(work, session, inputs)

        def profiled_session(prefix: str) -> Any:
            own = _session_options(onnxruntime, wanted)
            own.enable_profiling, own.profile_file_prefix = True, prefix
            return onnxruntime.InferenceSession(graph, own, providers=[place.provider])

        return Contestant(
            bind=bind,
            deal=deal if place.stream is None and given.quantized is None else None,
            done=None,
            outputs=partial(_answers, work, held, place),
            weights=partial(dict, given.weights),
            in_force=found,
            quantization=given.quantized.quantization if given.quantized else None,
            fed=Fed(operator.attrgetter("pointer"), runner_on_slots(work, session, held))
            if place.stream is None
            else None,
            stream=None if place.stream is None else DeviceStream("user_compute_stream", lambda _call: place.stream),
            profiler=None if place.stream is not None else _profiler(profiled_session, work, held, place),
            no_memory_because=_NO_MEMORY,
            compilation=partial(_compilation, onnxruntime, work, graph, wanted, place, bind, any_size),
        )


def _refuse(work: Workload, wanted: Settings) -> None:
    refuse_what_is_unknown(OnnxRuntime, work, wanted)
    if wanted.device == "cpu":
        if work.precision in NAMES:
            raise Unsupported(f"onnxruntime has no {work.precision} on a CPU: {_ON_CPU}")
    elif work.spec.continuation:
        raise Unsupported("onnxruntime answers token by token on the CPU only here")
    elif "provider" in wanted.options:
        raise Unsupported("on a GPU the provider is CUDA's; onnxruntime:tensorrt takes TensorRT's")
    if work.precision == "int8" and wanted.options:
        raise Unsupported("onnxruntime is raced in int8 with its default options")
    if work.precision == "tf32" and wanted.variant == "tensorrt":
        raise Unsupported("onnxruntime:tensorrt has no tf32 here: ONNX Runtime cannot switch it on or off")


@dataclass(frozen=True)
class _Given:
    """The graph that a session is made of, in the precision that is raced."""

    graph: bytes | str
    weights: Answers  # read from it; none of a quantized one
    in_force: Mapping[str, str] = field(default_factory=dict)
    quantized: QuantizedFile | None = None


def _given(work: Workload, graph: bytes | str, place: Place, phase: Phase, version: str) -> _Given:
    if work.precision in NAMES:
        with phase("convert"):
            narrow = in_16_bits(graph, work.precision)
            return _Given(narrow.graph, narrow.weights(work.weights), narrow.in_force())
    if work.precision == "int8":
        with phase("convert"):
            made = (quantized if place.stream is None else quantized_for_gpu)(work, graph, version)
        return _Given(str(made.file), {}, quantized=made)
    weights, holds_fp8 = weights_and_fp8_in(graph, work.weights)
    stored = {"fp8": "the type of stored weights; products are computed in float32"}
    return _Given(graph, weights, stored if holds_fp8 and place.provider != TENSORRT else {})


def _session(onnxruntime: Any, graph: bytes | str, options: Any, place: Place) -> Any:
    names, settings = zip(*place.providers, strict=True)
    return onnxruntime.InferenceSession(graph, options, providers=list(names), provider_options=list(settings))


def _nodes(session: Any, wanted: Settings) -> dict[str, str]:
    nodes = nodes_by_provider(session, OnnxRuntime.packages_on["cuda"][0])
    refuse_work_on_cpu(nodes, wanted.device)
    return {"nodes": described_nodes(nodes)}


def _generating(work: Workload, session: Any, encoder: Any, held: Answers, found: Mapping[str, str]) -> Contestant:
    from fairlap.frameworks.adapter_parts.generation.onnxruntime_generation import generation

    return Contestant(
        **answer_calls(work, generation(session, encoder)),
        weights=partial(dict, held),
        in_force=found,
        no_memory_because=_NO_MEMORY,
    )


def _profiler(session_of: Callable[[str], Any], work: Workload, held: Mapping[str, Any], place: Place) -> Profiler:
    def session_profiler() -> RebuiltModel:
        from fairlap.frameworks.adapter_parts.profiles.onnxruntime_profile import SessionProfiler

        return SessionProfiler(session_of, lambda session, arrays: _bind(session, work, held, place, arrays))

    return profiler_of_rebuilt("onnxruntime", session_profiler)


def _compilation(
    onnxruntime: Any,
    work: Workload,
    graph: bytes | str,
    wanted: Settings,
    place: Place,
    bind: Callable[[Arrays], Callable[[], Any]],
    any_size: Callable[[Arrays], Callable[[], Any]],
) -> Compilation:
    from fairlap.frameworks.adapter_parts.compilation.onnx_compilation import compilation_of_session

    def session(graph: bytes | str, optimized: Path) -> Any:
        options = _session_options(onnxruntime, wanted)
        options.optimized_model_filepath = str(optimized)
        return _session(onnxruntime, graph, options, place)

    open_sizes = takes_other_sizes(work) and place.stream is None and work.precision != "int8"
    return compilation_of_session(graph, session, bind, any_size if open_sizes else None)


def _session_options(onnxruntime: Any, wanted: Settings) -> Any:
    level = _LEVELS[wanted.options.get("optimization", "all")]
    spinning = _SPINNING[wanted.options.get("spinning", "on")]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = wanted.threads
    options.inter_op_num_threads = whole_option(wanted.options, "interop_threads", wanted.threads)
    at_once = options.inter_op_num_threads > 1  # branches of the graph; otherwise one operation after the other
    modes = onnxruntime.ExecutionMode
    options.execution_mode = modes.ORT_PARALLEL if at_once else modes.ORT_SEQUENTIAL
    options.enable_cpu_mem_arena = wanted.options.get("arena", "on") == "on"
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.add_session_config_entry(_SPINNING_KEY, spinning)
    options.log_severity_level = 3  # errors
    if wanted.device != "cpu":
        options.add_session_config_entry(RECORD_PLACES, "1")
    register_custom_ops(options, wanted.options)
    return options


def _bind(session: Any, work: Workload, held: Mapping[str, Any], place: Place, inputs: Arrays) -> Callable[[], Any]:
    import onnxruntime

    binding, values = place.memory.bound(session, work, inputs, held)
    if place.stream is None:
        return and_hand_through(call_of(session, binding, values), place.memory.handed_through(inputs, held))
    from fairlap.engine.cuda.device_completion import device_completion

    wait = device_completion(place.memory.number)
    wait(None)  # copies to the device do not wait for our stream, nor it for them
    if place.graphs is None:
        return call_of(session, binding, values, place.run_options)
    call = call_of(session, binding, values, run_options(onnxruntime, next(place.graphs)))
    call()  # which captures the graph of this binding's addresses
    wait(None)
    return call


def _answers(work: Workload, held: Mapping[str, Any], place: Place, binding: Any) -> Answers:
    if binding is not None:  # of any size
        return answers_in(work, binding)
    return named_outputs(work.spec, [place.memory.read(tensor, held[tensor.name]) for tensor in work.spec.outputs])


def _integers_in(onnxruntime: Any, file: Path, options: Any, place: Place) -> dict[str, str]:
    """Count the products in integers, in a graph that a second session writes: a session does not show its own.

    TensorRT's engines are no graphs: of them only what was asked for can be counted.
    """
    weights = "quantized; the answers alone prove that they are the same"
    if place.provider == TENSORRT:
        asked, floats = quantized_products_in(file)
        return {
            "precision": f"{UNKNOWN}: ONNX Runtime does not report the types of TensorRT's layers",
            "quantized": f"{asked} of {asked + floats} products have quantized operands",
            "weights": weights,
        }
    with tempfile.TemporaryDirectory() as scratch:
        options.optimized_model_filepath = str(Path(scratch) / "optimized.onnx")
        _session(onnxruntime, str(file), options, place)
        integers, floats = operations_in(Path(options.optimized_model_filepath))
    if place.provider == CUDA and not integers:
        raise Unsupported(
            f"onnxruntime computes all {floats} products of the quantized graph in float with {CUDA}; race "
            "onnxruntime:tensorrt in int8"
        )
    products = f"{integers} of {integers + floats} products in integers"
    return {"precision": "int8" if integers else "fp32", "quantized": products, "weights": weights}


def _in_force(session: Any, wanted: Settings) -> dict[str, str]:
    options = session.get_session_options()
    declared = {each.type for each in (*session.get_inputs(), *session.get_outputs())}
    narrow = [precision for precision, name in NAMES.items() if f"tensor({name})" in declared]
    tf32 = session.get_provider_options().get(CUDA, {}).get("use_tf32", "0") == "1"
    return {
        "threads": str(options.intra_op_num_threads),
        "precision": narrow[0] if narrow else "tf32" if tf32 else "fp32",
        "providers": ", ".join(session.get_providers()),
        "optimization": options.graph_optimization_level.name,
        "interop_threads": str(options.inter_op_num_threads),
        "execution_mode": options.execution_mode.name,
        "spinning": {on: name for name, on in _SPINNING.items()}[options.get_session_config_entry(_SPINNING_KEY)],
        "calls": "run_with_iobinding, on inputs and outputs bound before",
        "memory_arena": "on" if options.enable_cpu_mem_arena else "off",
        "telemetry": f"ORT_DISABLE_TELEMETRY={os.environ.get('ORT_DISABLE_TELEMETRY', '')}, requested, not readable",
        "weights": "read from the model's bytes; the session cannot be asked",
        **custom_ops_in_force(wanted.options),
    }
