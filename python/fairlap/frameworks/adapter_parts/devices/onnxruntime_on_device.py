"""ONNX Runtime on a GPU: its providers, where its nodes run, its stream, and runs that return when all is enqueued."""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path
from typing import Any

from fairlap.errors import shortened
from fairlap.frameworks.contract import Settings, Unsupported, device_number
from fairlap.request.work import Precision

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
GRAPH = "graph"
"""The variant of CUDA's provider whose calls are CUDA graphs."""

_LIBRARIES = {CUDA: "libonnxruntime_providers_cuda.so", TENSORRT: "libonnxruntime_providers_tensorrt.so"}
_SHARED = "libonnxruntime_providers_shared.so"
_NUMBER_OF_GRAPH = "gpu_graph_id"
_RETURN_WHEN_ENQUEUED = "disable_synchronize_execution_providers"
_CPU = "CPUExecutionProvider"
RECORD_PLACES = "session.record_ep_graph_assignment_info"

# ONNX Runtime prefers the CPU for what computes shapes (GetCpuPreferredNodes of its fallback_cpu_capability.cc): a few
# integers, which the host needs. All other nodes are on the CPU because no kernel of the device takes them.
_OF_SHAPES = frozenset(
    {
        *("Shape", "Size", "Constant", "ConstantOfShape", "Range", "Gather", "Slice", "Concat", "Split"),
        *("Squeeze", "Unsqueeze", "Reshape", "Cast", "Identity", "Add", "Sub", "Mul", "Div", "Mod", "Min", "Max"),
        *("Equal", "Less", "Greater", "Not", "And", "Or", "Where", "ReduceProd", "ReduceMax", "ReduceMin", "Expand"),
    }
)


def provider_of(onnxruntime: Any, wanted: Settings, install: str) -> str:
    """CUDA's, or TensorRT's for that variant. Raises Unsupported with what is missing, in one line."""
    from fairlap.engine import _native

    provider = TENSORRT if wanted.variant == "tensorrt" else CUDA
    if absent := _native.cuda_absent_because():
        raise Unsupported(f"onnxruntime cannot run on {wanted.device}: there is no CUDA driver: {shortened(absent)}")
    here = onnxruntime.get_available_providers()
    if provider not in here:
        raise Unsupported(
            f"onnxruntime has no {provider} here, it has {', '.join(here)}; install {install} in its place"
        )
    onnxruntime.preload_dlls()
    return provider


def why_not_loaded(onnxruntime: Any, provider: str) -> str:
    """Report what the linker misses; ONNX Runtime itself only logs it and takes another provider."""
    folder = Path(str(onnxruntime.__file__)).parent / "capi"
    try:
        ctypes.CDLL(str(folder / _SHARED), mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(folder / _LIBRARIES[provider]))
    except OSError as error:
        return shortened(str(error))
    return "its libraries load, so the device or its driver refused"


def provider_options(provider: str, wanted: Settings, stream: int, precision: Precision = "fp32") -> dict[str, str]:
    """Float32 means float32 on a GPU too; TensorRT takes that from an environment variable.

    Without an option for fp16 or int8 its networks are strongly typed: what a graph declares is what is computed. With
    one of them TensorRT may choose (tensorrt_execution_provider.cc, since TensorRT 10).
    """
    limit_bytes = wanted.device_memory_limit_bytes
    options = {"device_id": str(device_number(wanted.device)), "user_compute_stream": str(stream)}
    if provider == TENSORRT:
        kept = wanted.cache_folder
        caches = {"trt_engine_cache_enable": "1", "trt_engine_cache_path": kept} if kept else {}
        return {**options, **caches}
    limited = {} if limit_bytes is None else {"gpu_mem_limit": str(limit_bytes)}
    graphs = {"enable_cuda_graph": "1"} if wanted.variant == GRAPH else {}
    return {**options, "use_tf32": str(int(precision == "tf32")), **limited, **graphs}


def providers_for(wanted: Settings, stream: int, precision: Precision = "fp32") -> list[tuple[str, dict[str, str]]]:
    """In order of preference. CUDA takes what TensorRT rejects, which would otherwise go to the CPU."""
    names = (TENSORRT, CUDA) if wanted.variant == "tensorrt" else (CUDA,)
    return [(name, provider_options(name, wanted, stream, precision)) for name in names]


def nodes_by_provider(session: Any, install: str) -> dict[str, Counter[str]]:
    """Count the operations that each provider has, by type. The session must have been asked to record them."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        raise Unsupported(f"this onnxruntime does not report on which device its nodes run; install {install}")
    found: dict[str, Counter[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        found.setdefault(str(part.ep_name), Counter()).update(str(node.op_type) for node in part.get_nodes())
    return found


def refuse_work_on_cpu(nodes: dict[str, Counter[str]], device: str) -> None:
    """Accept on the CPU only what computes shapes."""
    on_cpu = {kind: count for kind, count in nodes.get(_CPU, Counter()).items() if kind not in _OF_SHAPES}
    if on_cpu:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(on_cpu.items()))
        whole = sum(counts.total() for counts in nodes.values())
        raise Unsupported(
            f"onnxruntime would run {sum(on_cpu.values())} of {whole} nodes on the CPU instead of {device}: {kinds}"
        )


def described_nodes(nodes: dict[str, Counter[str]]) -> str:
    """Such as "Tensorrt 52, CUDA 3, CPU 4 (Concat, Gather, Shape)"."""
    found = [
        f"{name.removesuffix('ExecutionProvider')} {counts.total()}" for name, counts in nodes.items() if name != _CPU
    ]
    on_cpu = nodes.get(_CPU, Counter())
    return ", ".join([*found, *([f"CPU {on_cpu.total()} ({', '.join(sorted(on_cpu))})"] if on_cpu else [])])


def run_options(onnxruntime: Any, graph: int | None = None) -> Any:
    """``graph`` is the number of the CUDA graph that the run captures, or replays if it was captured before."""
    options = onnxruntime.RunOptions()
    options.add_run_config_entry(_RETURN_WHEN_ENQUEUED, "1")
    if graph is not None:
        options.add_run_config_entry(_NUMBER_OF_GRAPH, str(graph))
    return options
