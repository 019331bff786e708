"""When the work of a call is done on a device: what waits for it, and on which stream a framework put it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap import quantity_text
from fairlap.engine import _native
from fairlap.engine.cuda.libraries import cupti_places, native_errors_explained, require_cuda
from fairlap.errors import NotAvailable

COMPLETION = "the wait for all work of the device"


def device_completion(device: int, first: Callable[[Any], object] | None = None) -> Callable[[Any], object]:
    """Make a function that waits until the device has done all its work, on every stream.

    The framework must have used the device before.

    ``first`` is the framework's own wait, for one whose calls return before all their work is enqueued.
    """
    require_cuda()
    with native_errors_explained():
        wait = _native.DeviceWait(device)
    if first is None:
        return wait

    def first_and_then_the_device(result: Any) -> None:
        first(result)
        wait(result)

    return first_and_then_the_device


def stream_used_by(call: Callable[[], object], device: int) -> int:
    """Find the address of the stream on which one call launches its kernels, as CUPTI's callbacks show it.

    Raises NotAvailable if there is no such stream, or more than one. From then on launches in this process may cost
    more, since CUPTI stays loaded.
    """
    require_cuda()
    with native_errors_explained():
        places = cupti_places(_native.cuda_driver_version())
        launches = _native.launches_during(call, device=device, cupti_places=places)
    if not launches:
        raise NotAvailable(f"the call launched no kernel on CUDA device {device}")
    if len(launches) > 1:
        listed = ", ".join(
            f"{address:#x} ({quantity_text.count(count, 'launch')})" for address, count in sorted(launches.items())
        )
        raise NotAvailable(f"the call works on {len(launches)} streams: {listed}")
    return next(iter(launches))


def own_stream(device: int) -> _native.OwnStream:
    """Create a stream for a framework that takes one; it lives as long as the object that is returned."""
    require_cuda()
    with native_errors_explained():
        return _native.OwnStream(device)
