"""TensorFlow on a GPU: its settings, the stream of its work and its allocator's statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.frameworks.adapter_parts.devices.missing_device import missing_device
from fairlap.frameworks.contract import DeviceStream, device_number


def prepare_device(wanted: str, limit_bytes: int | None, install: str, *, tf32: bool) -> None:
    """Use the only visible GPU for every operation with a kernel, in true float32 unless TF32 is asked for."""
    import tensorflow as tf

    found, number = tf.config.list_physical_devices("GPU"), device_number(wanted)
    if number >= len(found):
        built = tf.test.is_built_with_cuda()
        raise missing_device("tensorflow", wanted, len(found), built_with_cuda=built, install=install)
    tf.config.set_visible_devices([found[number]], "GPU")
    if limit_bytes is not None:
        limited = tf.config.LogicalDeviceConfiguration(memory_limit=max(1, limit_bytes >> 20))  # in MiB
        tf.config.set_logical_device_configuration(found[number], [limited])
    tf.config.experimental.enable_tensor_float_32_execution(tf32)


def on_device(device: str) -> dict[str, Any]:
    """Collect the fields of a contestant that only one on a GPU has.

    Nothing in Python shows its stream, so CUPTI is asked on which one a call launches its kernels.
    """
    if device == "cpu":
        return {}

    def find(call: Callable[[], Any]) -> int:
        from fairlap.engine.cuda.device_completion import stream_used_by

        return stream_used_by(call, device_number(device))

    return {
        "stream": DeviceStream("CUPTI's callbacks during one call", find),
        "memory_bytes": _device_memory,
        "forget_memory_peak": _forget_device_peak,
    }


def _device_memory() -> dict[str, int]:
    import tensorflow as tf

    memory = tf.config.experimental.get_memory_info("GPU:0")
    return {"live": int(memory["current"]), "live_peak": int(memory["peak"])}


def _forget_device_peak() -> None:
    import tensorflow as tf

    tf.config.experimental.reset_memory_stats("GPU:0")
