"""ONNX Runtime: a session whose inputs and outputs are bound to memory, so that nothing is copied around a call."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.adapter_parts.onnx_graph import serialized_graph, weights_in
from fairlap.frameworks.contract import Contestant, Fed, Framework, Phase, Settings, Unsupported, refuse_what_is_unknown
from fairlap.models.workload import Arrays, Workload

_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disabled": "ORT_DISABLE_ALL",
}
_PROVIDERS = {  # by the device in whose memory inputs and outputs are bound; the first is the default
    "cpu": {
        "cpu": "CPUExecutionProvider",
        "dnnl": "DnnlExecutionProvider",
        "openvino": "OpenVINOExecutionProvider",
        "xnnpack": "XnnpackExecutionProvider",
    },
    "cuda": {"cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"},
}
_SPINNING = {"on": "1", "off": "0"}
_OPTIONS = ("provider", "optimization", "spinning")
_SPINNING_KEY = "session.intra_op.allow_spinning"


class OnnxRuntime(Framework):
    name = "onnxruntime"
    packages = ("onnxruntime==1.31.1", "onnx==1.23.2")
    module = "onnxruntime"
    device_memory_limit = "gpu_mem_limit of the CUDA provider"

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {"ORT_DISABLE_TELEMETRY": "1"}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        lacking = "its kernels there compute in float32"
        refuse_what_is_unknown(type(self), work, wanted, options=_OPTIONS, lacking=lacking, devices=tuple(_PROVIDERS))
        with phase("import"):
            import onnxruntime
        self._version = str(onnxruntime.__version__)
        options, provider = _session_options(onnxruntime, wanted), _provider(onnxruntime, wanted)
        kind, number = _place(wanted.device)
        with phase("build"):
            graph = serialized_graph(work, work.weights)
        with phase("compile"):  # making the session is what optimizes the graph
            session = onnxruntime.InferenceSession(
                graph, options, providers=[provider], provider_options=[_provider_options(provider, number, wanted)]
            )
        if session.get_providers()[0] != provider:
            raise Unsupported(f"onnxruntime replaced {provider} by {session.get_providers()[0]}")
        # All bindings write to the same memory, so the outputs are those of the last call.
        held = {
            tensor.name: onnxruntime.OrtValue.ortvalue_from_shape_and_type(
                tensor.sized(work.batch), np.dtype(tensor.dtype).type, kind, number
            )
            for tensor in work.spec.outputs
        }
        return Contestant(
            bind=partial(_bind, session, held, wanted.device),
            done=None,  # a run returns when it is complete, also on a GPU
            outputs=partial(_answers, work, held),
            weights=partial(dict, weights_in(graph, work.weights)),
            in_force=_in_force(session),
            fed=Fed(operator.attrgetter("pointer"), _runner(work, session, held)) if kind == "cpu" else None,
            stream=None if kind == "cpu" else "hidden",
            method=None if kind == "cpu" else "context_span",
            no_memory_because="ONNX Runtime's Python interface tells no statistics of its arena",
        )

    def version(self) -> str:
        return self._version


def _session_options(onnxruntime: Any, wanted: Settings) -> Any:
    level = _one_of(_LEVELS, "optimization", wanted.options.get("optimization", "all"))
    spinning = _one_of(_SPINNING, "spinning", wanted.options.get("spinning", "on"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = wanted.threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.add_session_config_entry(_SPINNING_KEY, spinning)
    options.log_severity_level = 3  # errors
    return options


def _provider(onnxruntime: Any, wanted: Settings) -> str:
    here = onnxruntime.get_available_providers()
    kind, _ = _place(wanted.device)
    known = {name: provider for name, provider in _PROVIDERS[kind].items() if provider in here}
    if not known:
        raise Unsupported(f"this onnxruntime has no provider for {kind}; it has {', '.join(here)}")
    return _one_of(known, "provider", wanted.options.get("provider", next(iter(known))))


def _place(device: str) -> tuple[str, int]:
    kind, _, number = device.partition(":")
    return kind, int(number or 0)


def _provider_options(provider: str, number: int, wanted: Settings) -> dict[str, str]:
    """Float32 means float32 on a GPU too."""
    if provider == "CUDAExecutionProvider":
        limit_bytes = wanted.device_memory_limit_bytes
        limited = {} if limit_bytes is None else {"gpu_mem_limit": str(limit_bytes)}
        return {"device_id": str(number), "use_tf32": "0", **limited}
    return {"device_id": str(number)} if provider == "TensorrtExecutionProvider" else {}


def _one_of(known: Mapping[str, str], option: str, value: str) -> str:
    if value not in known:
        raise Unsupported(f"onnxruntime has no {option} {value!r}; it has {', '.join(known)}")
    return known[value]


def _bind(session: Any, held: Mapping[str, Any], device: str, inputs: Arrays) -> Callable[[], Any]:
    import onnxruntime

    binding = session.io_binding()
    for name, array in inputs.items():
        # On the CPU it shares the array's memory; to a GPU it is copied once.
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, *_place(device)))
    for name, value in held.items():
        binding.bind_ortvalue_output(name, value)
    return partial(session.run_with_iobinding, binding)


def _runner(work: Workload, session: Any, held: Mapping[str, Any]) -> Callable[[Mapping[str, int]], None]:
    """A feeder reuses few slots, so each address is bound once. The caller keeps the batch alive."""
    bindings: dict[tuple[int, ...], Any] = {}

    def bound_to(addresses: Mapping[str, int]) -> Any:
        binding = session.io_binding()
        for tensor in work.spec.inputs:
            kind, shape = np.dtype(tensor.dtype).type, tensor.sized(work.batch)
            binding.bind_input(tensor.name, "cpu", 0, kind, shape, addresses[tensor.name])
        for name, value in held.items():
            binding.bind_ortvalue_output(name, value)
        return binding

    def run(addresses: Mapping[str, int]) -> None:
        key = tuple(addresses.values())
        binding = bindings.get(key)
        if binding is None:
            binding = bindings[key] = bound_to(addresses)
        session.run_with_iobinding(binding)

    return run


def _answers(work: Workload, held: Mapping[str, Any], _result: None) -> Answers:
    return named_outputs(work.spec, [held[tensor.name].numpy().copy() for tensor in work.spec.outputs])


def _in_force(session: Any) -> dict[str, str]:
    options = session.get_session_options()
    return {
        "threads": str(options.intra_op_num_threads),
        "precision": "fp32",
        "providers": ", ".join(session.get_providers()),
        "optimization": options.graph_optimization_level.name,
        "execution_mode": options.execution_mode.name,
        "spinning": {on: name for name, on in _SPINNING.items()}[options.get_session_config_entry(_SPINNING_KEY)],
        "memory_arena": "on" if options.enable_cpu_mem_arena else "off",
        "telemetry": f"ORT_DISABLE_TELEMETRY={os.environ.get('ORT_DISABLE_TELEMETRY', '')}, requested, not readable",
        "weights": "read from the model's bytes; the session cannot be asked",
    }
