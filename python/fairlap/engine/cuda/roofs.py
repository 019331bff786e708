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


_HOPPER = 90
_FP8_SINCE = 12_040  # PTX 8.4 has Ada's products of fp8; Hopper's are older
_FP4_SINCE = 12_090  # PTX 8.8 has them for a family of devices


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
        capability = self.facts.capability
        if not _native.has_device_arithmetic(number_type, capability):
            raise NotAvailable(_why_not(number_type, capability))
        if number_type == "fp8" and capability != _HOPPER and self.facts.driver_cuda_version < _FP8_SINCE:
            raise NotAvailable("products of fp8 need a driver for CUDA 12.4 or later")
        if number_type == "fp4" and self.facts.driver_cuda_version < _FP4_SINCE:
            raise NotAvailable("products of fp4 need a driver for CUDA 12.9 or later")
        with native_errors_explained():
            trials = _native.device_arithmetic_trials(self._stream, number_type, capability)
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


def _why_not(number_type: str, capability: int) -> str:
    device = f"compute capability {capability // 10}.{capability % 10}"
    if number_type in ("tf32", "fp16", "bf16", "fp8", "fp4", "int8") and capability >= 100:
        return f"the matrix units of {device} are not measured"
    return f"no instructions of {device} for it are measured"
