"""ONNX Runtime on a GPU: its provider, the stream that it is given, and runs that return when all is enqueued."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from fairlap.errors import shortened
from fairlap.frameworks.contract import Settings, Unsupported, device_number

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
_LIBRARIES = {CUDA: "libonnxruntime_providers_cuda.so", TENSORRT: "libonnxruntime_providers_tensorrt.so"}
_SHARED = "libonnxruntime_providers_shared.so"
_RETURN_WHEN_ENQUEUED = "disable_synchronize_execution_providers"


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


def provider_options(provider: str, wanted: Settings, stream: int, *, tf32: bool = False) -> dict[str, str]:
    """Float32 means float32 on a GPU too; TensorRT takes that from an environment variable."""
    limit_bytes = wanted.device_memory_limit_bytes
    options = {"device_id": str(device_number(wanted.device)), "user_compute_stream": str(stream)}
    if provider == TENSORRT:
        kept = wanted.cache_folder
        caches = {"trt_engine_cache_enable": "1", "trt_engine_cache_path": kept} if kept else {}
        return {**options, **caches}
    limited = {} if limit_bytes is None else {"gpu_mem_limit": str(limit_bytes)}
    return {**options, "use_tf32": str(int(tf32)), **limited}


def run_options(onnxruntime: Any) -> Any:
    options = onnxruntime.RunOptions()
    options.add_run_config_entry(_RETURN_WHEN_ENQUEUED, "1")
    return options
