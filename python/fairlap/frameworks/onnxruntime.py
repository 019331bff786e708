"""ONNX Runtime: a session whose inputs and outputs are bound to memory, so that nothing is copied around a call.

On a GPU it works on a stream of ours, and a run returns when all its work is enqueued.
"""

from __future__ import annotations

import operator
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.adapter_parts.devices.onnxruntime_on_device import (
    CUDA,
    RECORD_PLACES,
    described_nodes,
    nodes_by_provider,
    provider_of,
    providers_for,
    refuse_work_on_cpu,
    run_options,
    why_not_loaded,
)
from fairlap.frameworks.adapter_parts.onnx_graph import encoder_of, files_of, graph_of, takes_other_sizes, weights_in
from fairlap.frameworks.adapter_parts.onnxruntime_bindings import answers_in, bind_any_size, runner_on_slots
from fairlap.frameworks.adapter_parts.profiles.rebuilt_model import RebuiltModel, profiler_of_rebuilt
from fairlap.frameworks.adapter_parts.quantized.onnxruntime_quantized import operations_in, quantized
from fairlap.frameworks.adapter_parts.quantized.quantized_files import QuantizedFile
from fairlap.frameworks.contract import (
    Contestant,
    DeviceStream,
    Fed,
    Framework,
    Phase,
    Settings,
    Unsupported,
    device_number,
    refuse_what_is_unknown,
    whole_option,
)
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.contract_parts.generation import answer_calls
from fairlap.frameworks.contract_parts.profiler import Profiler
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disabled": "ORT_DISABLE_ALL",
}
_PROVIDERS = {  # on the CPU; the first is the default
    "cpu": "CPUExecutionProvider",
    "dnnl": "DnnlExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
}
_SPINNING = {"on": "1", "off": "0"}
_SPINNING_KEY = "session.intra_op.allow_spinning"

_NO_MEMORY = "ONNX Runtime's Python interface reports no statistics of its arena"


class OnnxRuntime(Framework):
    name = "onnxruntime"
    of_several_works = ("",)
    packages = ("onnxruntime==1.31.1", "onnx==1.23.2")
    packages_on: ClassVar = {"cuda": ("onnxruntime-gpu[cuda,cudnn]==1.31.1", "onnx==1.23.2")}
    module = "onnxruntime"
    implementation = "onnx"
    generates = True
    variants = ("", "tensorrt")
    options: ClassVar = {
        "provider": tuple(_PROVIDERS),
        "optimization": tuple(_LEVELS),
        "spinning": tuple(_SPINNING),
        "interop_threads": (),
        "arena": ("on", "off"),
    }
    tunable: ClassVar = {
        "spinning": ("off",),
        "interop_threads": ("{threads}",),
        "arena": ("off",),
        "optimization": ("extended", "basic"),
        "provider": ("dnnl", "xnnpack", "openvino"),  # those that this build lacks are refused
    }
    tunable_on: ClassVar = {"cuda": {"variant": ("tensorrt",), "optimization": ("extended",)}}
    precisions = ("fp32", "tf32", "int8")
    no_precision: ClassVar = dict.fromkeys(
        ("fp16", "bf16", "autocast"), "its kernels on the CPU compute in float32 or in integers"
    )
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
        devices = ("cuda",) if wanted.variant == "tensorrt" else ("cpu", "cuda")
        refuse_what_is_unknown(type(self), work, wanted, devices=devices)
        with phase("import"):
            import onnxruntime
        self._version = str(onnxruntime.__version__)
        options, place = _session_options(onnxruntime, wanted), _Place.of(onnxruntime, wanted, work.precision)
        with phase("build"):
            graph = graph_of(work, work.weights)
        made: QuantizedFile | None = None
        if work.precision == "int8":
            if place.stream is not None or wanted.options:
                raise Unsupported("onnxruntime is raced in int8 on the CPU, with its default options")
            with phase("convert"):
                made = quantized(work, graph, self._version)
            graph = str(made.file)
        with phase("compile"):  # making the session is what optimizes the graph, and what builds TensorRT's engines
            session = _session(onnxruntime, graph, options, place)
            of_prompt = encoder_of(work)
            encoder = _session(onnxruntime, of_prompt, options, place) if of_prompt else None
        if session.get_providers()[0] != place.provider:
            why = f": {why_not_loaded(onnxruntime, place.provider)}" if place.stream is not None else ""
            raise Unsupported(f"onnxruntime replaced {place.provider} by {session.get_providers()[0]}{why}")
        where = _nodes(session, wanted) if place.stream is not None else {}
        if work.spec.continuation:
            return _generating(work, session, encoder, place, graph)
        # All bindings write to the same memory, so the outputs are those of the last call.
        held = _places_of_outputs(onnxruntime, work, place)

        def bind(inputs: Arrays) -> Callable[[], Any]:
            return _bind(session, held, place, inputs)

        def deal() -> None:
            nonlocal session
            session = _session(onnxruntime, graph, options, place)
            held.update(_places_of_outputs(onnxruntime, work, place))

        def any_size(inputs: Arrays) -> Callable[[], Any]:
            return bind_any_size(work, session, inputs)

        def profiled_session(prefix: str) -> Any:
            own = _session_options(onnxruntime, wanted)
            own.enable_profiling, own.profile_file_prefix = True, prefix
            return onnxruntime.InferenceSession(graph, own, providers=[place.provider])

        return Contestant(
            bind=bind,
            deal=deal if place.stream is None and made is None else None,
            done=None,
            outputs=partial(_answers, work, held),
            weights=partial(dict, {} if made else weights_in(graph, work.weights)),
            in_force=_in_force(session) | where | (_integers_in(onnxruntime, made.file, options) if made else {}),
            quantization=made.quantization if made else None,
            fed=Fed(operator.attrgetter("pointer"), runner_on_slots(work, session, held))
            if place.stream is None
            else None,
            stream=None if place.stream is None else DeviceStream("user_compute_stream", lambda _call: place.stream),
            profiler=None if place.stream is not None else _profiler(profiled_session, held, place),
            no_memory_because=_NO_MEMORY,
            compilation=partial(_compilation, onnxruntime, work, made, wanted, place, bind, any_size),
        )

    def version(self) -> str:
        return self._version


def _session(onnxruntime: Any, graph: bytes | str, options: Any, place: _Place) -> Any:
    return onnxruntime.InferenceSession(graph, options, providers=list(place.providers))


def _nodes(session: Any, wanted: Settings) -> dict[str, str]:
    nodes = nodes_by_provider(session, OnnxRuntime.packages_on["cuda"][0])
    refuse_work_on_cpu(nodes, wanted.device)
    return {"nodes": described_nodes(nodes)}


def _places_of_outputs(onnxruntime: Any, work: Workload, place: _Place) -> dict[str, Any]:
    return {
        tensor.name: onnxruntime.OrtValue.ortvalue_from_shape_and_type(
            tensor.sized(work.batch), np.dtype(tensor.dtype).type, place.kind, place.number
        )
        for tensor in work.spec.outputs
    }


def _generating(work: Workload, session: Any, encoder: Any, place: _Place, graph: bytes | str) -> Contestant:
    from fairlap.frameworks.adapter_parts.generation.onnxruntime_generation import generation

    if place.stream is not None:
        raise Unsupported("onnxruntime answers token by token on the CPU only here")
    return Contestant(
        **answer_calls(work, generation(session, encoder)),
        weights=partial(dict, weights_in(graph, work.weights)),
        in_force=_in_force(session),
        no_memory_because=_NO_MEMORY,
    )


def _profiler(session_of: Callable[[str], Any], held: Mapping[str, Any], place: _Place) -> Profiler:
    def session_profiler() -> RebuiltModel:
        from fairlap.frameworks.adapter_parts.profiles.onnxruntime_profile import SessionProfiler

        return SessionProfiler(session_of, lambda session, arrays: _bind(session, held, place, arrays))

    return profiler_of_rebuilt("onnxruntime", session_profiler)


def _compilation(
    onnxruntime: Any,
    work: Workload,
    made: QuantizedFile | None,
    wanted: Settings,
    place: _Place,
    bind: Callable[[Arrays], Callable[[], Any]],
    any_size: Callable[[Arrays], Callable[[], Any]],
) -> Compilation:
    from fairlap.frameworks.adapter_parts.compilation.onnx_compilation import compilation_of_session

    def session(graph: bytes | str, optimized: Path) -> Any:
        options = _session_options(onnxruntime, wanted)
        options.optimized_model_filepath = str(optimized)
        return _session(onnxruntime, graph, options, place)

    graph = graph_of(work, work.weights) if made is None else str(made.file)
    open_sizes = takes_other_sizes(work) and place.stream is None and made is None
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
    return options


@dataclass(frozen=True)
class _Place:
    """Where a session runs, and where its inputs and outputs are bound. ``stream`` is None on the CPU."""

    providers: Sequence[tuple[str, Mapping[str, str]]]  # in order of preference
    kind: str
    number: int = 0
    run_options: Any = None
    stream: Any = None

    @property
    def provider(self) -> str:
        return self.providers[0][0]

    @classmethod
    def of(cls, onnxruntime: Any, wanted: Settings, precision: Precision) -> _Place:
        if wanted.device == "cpu":
            here = onnxruntime.get_available_providers()
            known = {name: provider for name, provider in _PROVIDERS.items() if provider in here}
            chosen = _one_of(known, "provider", wanted.options.get("provider", next(iter(known))))
            return cls([(chosen, {})], "cpu")
        if "provider" in wanted.options:
            raise Unsupported("on a GPU the provider is CUDA's; onnxruntime:tensorrt takes TensorRT's")
        provider_of(onnxruntime, wanted, OnnxRuntime.packages_on["cuda"][0])
        from fairlap.engine.cuda.device_completion import own_stream

        number = device_number(wanted.device)
        stream = own_stream(number)
        if precision == "tf32" and wanted.variant:
            raise Unsupported("onnxruntime:tensorrt has no tf32 here: ONNX Runtime cannot switch it on or off")
        providers = providers_for(wanted, stream.address, tf32=precision == "tf32")
        return cls(providers, "cuda", number, run_options(onnxruntime), stream)


def _one_of(known: Mapping[str, str], option: str, value: str) -> str:
    if value not in known:
        raise Unsupported(f"onnxruntime has no {option} {value!r}; it has {', '.join(known)}")
    return known[value]


def _bind(session: Any, held: Mapping[str, Any], place: _Place, inputs: Arrays) -> Callable[[], Any]:
    import onnxruntime

    binding = session.io_binding()
    for name, array in inputs.items():
        # On the CPU it shares the array's memory; to a GPU it is copied once.
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, place.kind, place.number))
    for name, value in held.items():
        binding.bind_ortvalue_output(name, value)
    if place.stream is None:
        return partial(session.run_with_iobinding, binding)
    from fairlap.engine.cuda.device_completion import device_completion

    device_completion(place.number)(None)  # copies to the device do not wait for our stream, nor it for them
    return partial(session.run_with_iobinding, binding, place.run_options)


def _answers(work: Workload, held: Mapping[str, Any], binding: Any) -> Answers:
    if binding is not None:  # of any size
        return answers_in(work, binding)
    return named_outputs(work.spec, [held[tensor.name].numpy().copy() for tensor in work.spec.outputs])


def _integers_in(onnxruntime: Any, file: Path, options: Any) -> dict[str, str]:
    """Count the products in integers, in a graph that a second session writes: a session does not show its own."""
    with tempfile.TemporaryDirectory() as scratch:
        options.optimized_model_filepath = str(Path(scratch) / "optimized.onnx")
        onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        integers, floats = operations_in(Path(options.optimized_model_filepath))
    products = f"{integers} of {integers + floats} products in integers"
    return {
        "precision": "int8" if integers else "fp32",
        "quantized": products,
        "weights": "quantized; the answers alone prove that they are the same",
    }


def _in_force(session: Any) -> dict[str, str]:
    options = session.get_session_options()
    tf32 = session.get_provider_options().get(CUDA, {}).get("use_tf32", "0")
    return {
        "threads": str(options.intra_op_num_threads),
        "precision": "tf32" if tf32 == "1" else "fp32",
        "providers": ", ".join(session.get_providers()),
        "optimization": options.graph_optimization_level.name,
        "interop_threads": str(options.inter_op_num_threads),
        "execution_mode": options.execution_mode.name,
        "spinning": {on: name for name, on in _SPINNING.items()}[options.get_session_config_entry(_SPINNING_KEY)],
        "memory_arena": "on" if options.enable_cpu_mem_arena else "off",
        "telemetry": f"ORT_DISABLE_TELEMETRY={os.environ.get('ORT_DISABLE_TELEMETRY', '')}, requested, not readable",
        "weights": "read from the model's bytes; the session cannot be asked",
    }
