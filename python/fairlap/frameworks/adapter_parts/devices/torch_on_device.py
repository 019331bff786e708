"""PyTorch on a GPU: its settings, the stream of its work and its allocator's statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.frameworks.adapter_parts.devices.missing_device import missing_device
from fairlap.frameworks.contract import DeviceStream, device_number


def prepare_device(device: str, limit_bytes: int | None, package: str, *, tf32: bool) -> None:
    """Use true float32, unless TF32 is asked for: by default, convolutions would be computed in it."""
    import torch

    number, seen = device_number(device), torch.cuda.device_count()
    if number >= seen:
        built, install = torch.version.cuda is not None, f"{package} with CUDA, its default build on Linux"
        raise missing_device("torch", device, seen, built_with_cuda=built, install=install)
    torch.cuda.set_device(number)
    if limit_bytes is not None:
        whole = torch.cuda.get_device_properties(number).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit_bytes / whole), number)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def on_device(device: str) -> dict[str, Any]:
    """Collect the fields of a contestant that only one on a GPU has."""
    if device == "cpu":
        return {}
    import torch

    return {
        "stream": DeviceStream("torch.cuda.current_stream", _current_stream),
        "memory_bytes": _device_memory,
        "forget_memory_peak": torch.cuda.reset_peak_memory_stats,
    }


def _current_stream(_call: Callable[[], Any]) -> object:
    import torch

    return torch.cuda.current_stream()


def _device_memory() -> dict[str, int]:
    import torch

    return {
        "live": torch.cuda.memory_allocated(),
        "live_peak": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "reserved_peak": torch.cuda.max_memory_reserved(),
    }
