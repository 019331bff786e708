"""Trials of the fastest arithmetic, and of reading and writing memory, on a whole CUDA device."""

from __future__ import annotations

from typing import Literal

from fairlap.engine import _native
from fairlap.engine.cuda.device_completion import own_stream
from fairlap.engine.cuda.libraries import native_errors_explained, require_cuda
from fairlap.engine.roofs import Trials
from fairlap.errors import NotAvailable


def device_facts(device: int) -> _native.DeviceFacts:
    """Read the device's facts.

    Raises NotAvailable without CUDA, and InvalidRequest where this process sees no such device.
    """
    require_cuda()
    with native_errors_explained():
        return _native.cuda_device_facts(device)


# The releases of CUDA whose drivers are the first to read these versions of PTX. All drivers read the older ones.
_CUDA_WITH_PTX = {"8.4": 12_040, "8.6": 12_070, "8.7": 12_080, "8.8": 12_090, "9.0": 13_000}


def is_unproven(number_type: str, facts: _native.DeviceFacts) -> bool:
    """Whether kernels for it that such a device has not run yet could break the context that they run in."""
    unproven = _native.is_device_arithmetic_unproven(number_type, facts.capability)
    return unproven and _why_absent(number_type, facts) is None


class DeviceUnderTrial:
    """Starts the device, and holds it as long as it lives."""

    def __init__(self, device: int) -> None:
        self.facts = device_facts(device)
        self._stream = own_stream(device)

    @property
    def free_bytes(self) -> int:
        with native_errors_explained():
            return _native.device_free_bytes(self._stream)

    def arithmetic(self, number_type: str) -> Trials:
        """Multiply-adds of this number type in registers and shared memory; each counts as two operations."""
        if why := _why_absent(number_type, self.facts):
            raise NotAvailable(why)
        with native_errors_explained():
            trials = _native.device_arithmetic_trials(self._stream, number_type, self.facts.capability)
            return Trials(trials.instructions, trials)

    def triad(self, size_bytes: int) -> Trials:
        """Time ``a = b + 0.4 * c`` over three arrays of together so many bytes; an fp32 element counts as 12 bytes."""
        with native_errors_explained():
            trials = _native.device_triad_trials(self._stream, size_bytes)
            return Trials(trials.instructions, trials)

    def copies(self, way: Literal["to_device", "from_device", "both"]) -> Trials:
        """Time copies between the device and pinned memory on its memory node; of both ways at once, their sum."""
        with native_errors_explained():
            return Trials("", _native.copy_trials(self._stream, _native.CopyWay[way]))

    def copies_to(self, other: DeviceUnderTrial) -> tuple[Trials, bool]:
        """Time copies to another device; and return whether they go there directly, not through the host's memory."""
        with native_errors_explained():
            trials = _native.peer_copy_trials(self._stream, other._stream)
            return Trials("", trials), trials.is_direct


def _why_absent(number_type: str, facts: _native.DeviceFacts) -> str | None:
    """Explain why there are no kernels for such a device, or why its driver cannot load them; None if it can."""
    capability = facts.capability
    if not _native.has_device_arithmetic(number_type, capability):
        return f"no instructions of compute capability {capability // 10}.{capability % 10} for it are measured"
    needed = _CUDA_WITH_PTX.get(_native.device_arithmetic_ptx(number_type, capability), 0)
    if facts.driver_cuda_version < needed:
        return f"its instructions need a driver for CUDA {needed // 1000}.{needed % 1000 // 10} or later"
    return None
