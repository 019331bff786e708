"""What a device did during each of some calls, from its own records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.engine import _native
from fairlap.engine.cuda.libraries import cupti_places, native_errors_explained, require_cuda


def recorded_calls(call: Callable[[], Any], calls: int, device: int) -> list[_native.RecordedCall]:
    """Of the kernels, copies and fills on every stream of the device, which a framework must have used before.

    Records make launches slower, and from then on launches in this process may cost more: nothing that is timed should
    follow.
    """
    require_cuda()
    with native_errors_explained():
        places = cupti_places(_native.cuda_driver_version())
        return _native.recorded_calls(call, calls=calls, device=device, cupti_places=places)
