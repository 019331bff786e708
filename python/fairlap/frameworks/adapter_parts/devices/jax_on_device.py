"""JAX on a GPU: the stream of its work and its allocator's statistics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fairlap.errors import NotAvailable, described
from fairlap.frameworks.contract import DeviceStream

_STATISTICS = {
    "bytes_in_use": "live",
    "peak_bytes_in_use": "live_peak",
    "pool_bytes": "reserved",
    "peak_pool_bytes": "reserved_peak",
}


def stream_of_xla(device: Any, _call: Callable[[], Any]) -> int:
    """Find the address of XLA's stream for computations, which a callback between two operations gets.

    XLA puts the work of a program on one such stream for each device, unless it is asked for more.
    """
    import jax
    from jax.experimental.buffer_callback import buffer_callback

    found: list[int] = []
    errors: list[Exception] = []

    def look(context: Any, _out: Any, _value: Any) -> None:
        try:
            found.append(int(context.stream))
        except Exception as error:  # XLA would log it, and in XLA's thread nothing catches it
            errors.append(error)

    value = jax.device_put(np.float32(0), device)
    jax.jit(buffer_callback(look, jax.ShapeDtypeStruct((), np.float32), has_side_effect=True))(
        value
    ).block_until_ready()
    if not found:
        raise NotAvailable(f"XLA names no stream: {described(errors[0]) if errors else 'it called nothing back'}")
    return found[0]


def on_device(device: Any) -> dict[str, Any]:
    """Collect the fields of a contestant that only one on a GPU has."""

    def memory() -> dict[str, int]:
        statistics = device.memory_stats() or {}
        return {name: int(statistics[key]) for key, name in _STATISTICS.items() if key in statistics}

    found = DeviceStream("jax.experimental.buffer_callback", partial(stream_of_xla, device))
    return {"stream": found, "memory_bytes": memory}
