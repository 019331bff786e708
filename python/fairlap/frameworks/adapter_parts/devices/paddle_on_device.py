"""PaddlePaddle on a GPU: its settings, the stream of its work and its allocator's statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fairlap.frameworks.adapter_parts.devices.missing_device import missing_device
from fairlap.frameworks.contract import DeviceStream, Settings, Unsupported, device_number

_FALLBACK = "FLAGS_enable_api_kernel_fallback"
_FLAGS = {
    "cpu_fallback": _FALLBACK,
    "cudnn_deterministic": "FLAGS_cudnn_deterministic",
    "cudnn_exhaustive_search": "FLAGS_cudnn_exhaustive_search",
    "tensor_op_math": "FLAGS_enable_cublas_tensor_op_math",
}


def environment_for(settings: Settings) -> dict[str, str]:
    """Set what Paddle reads when it is imported: no kernel in place of a missing one on the CPU, and a memory limit."""
    if settings.device == "cpu":
        return {}
    limit_bytes = settings.device_memory_limit_bytes
    limit = {} if limit_bytes is None else {"FLAGS_gpu_memory_limit_mb": str(max(1, limit_bytes >> 20))}
    return {_FALLBACK: "0", **limit}


def prepare_device(wanted: str, install: str, *, tf32: bool) -> None:
    """Make new tensors there, and compute in true float32 unless TF32 is asked for: by default it is on."""
    import paddle

    number, seen = device_number(wanted), paddle.device.cuda.device_count()
    if number >= seen:
        built = paddle.is_compiled_with_cuda()
        raise missing_device("paddle", wanted, seen, built_with_cuda=built, install=install)
    paddle.set_device(_named(wanted))
    paddle.base.core.set_cublas_switch(tf32)
    paddle.base.core.set_cudnn_switch(tf32)


def in_force(tensors: Iterable[Any], device: str) -> dict[str, str]:
    """Read the settings back. Raises Unsupported for a model that is not all on this GPU."""
    if device == "cpu":
        return {}
    import paddle

    places = {str(tensor.place) for tensor in tensors}
    if elsewhere := sorted(places - {f"Place({_named(device)})"}):
        raise Unsupported(f"requested was {device}, and of the model's tensors some are on {', '.join(elsewhere)}")
    flags = paddle.get_flags(list(_FLAGS.values()))
    switches = paddle.base.core.get_cublas_switch(), paddle.base.core.get_cudnn_switch()
    return {
        "device": f"{paddle.device.get_device()}, {paddle.device.cuda.get_device_name(device_number(device))}",
        "tf32": _on(any(switches)),
        "cudnn": str(paddle.device.get_cudnn_version() or "none"),
        **{name: _on(flags[flag]) for name, flag in _FLAGS.items()},
    }


def on_device(device: str) -> dict[str, Any]:
    """Collect the fields of a contestant that only one on a GPU has."""
    if device == "cpu":
        return {}
    number = device_number(device)

    def stream(_call: Callable[[], Any]) -> object:
        import paddle

        return paddle.device.current_stream(_named(device))

    def memory() -> dict[str, int]:
        import paddle

        cuda = paddle.device.cuda
        return {
            "live": int(cuda.memory_allocated(number)),
            "live_peak": int(cuda.max_memory_allocated(number)),
            "reserved": int(cuda.memory_reserved(number)),
            "reserved_peak": int(cuda.max_memory_reserved(number)),
        }

    def forget_peak() -> None:
        import paddle

        paddle.device.cuda.reset_max_memory_allocated(number)
        paddle.device.cuda.reset_max_memory_reserved(number)

    return {
        "stream": DeviceStream("paddle.device.current_stream", stream),
        "memory_bytes": memory,
        "forget_memory_peak": forget_peak,
    }


def _named(device: str) -> str:
    """``gpu:1`` for ``cuda:1``."""
    return f"gpu:{device_number(device)}"


def _on(yes: object) -> str:
    return "on" if yes else "off"
