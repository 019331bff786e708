"""Whether a GPU was slowed down while contestants were measured, and its clock, temperature and power around each turn.

A GPU that is too hot, or that the board or the power supply holds back, runs at a fraction of its clock. NVML counts
the time on devices that support it, and says at any moment what holds the clock back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.machine.hardware.cuda_devices import Board, board_of
from fairlap.machine.hardware.gpu import SLOWED_BY_HEAT, SLOWED_BY_POWER, NvmlAbsent, device_memory, open_nvml, or_none

SLOWED = "device slowed down"  # the share of the time
MOST_SLOWED = 0.01  # of the time in which a block was measured

_NEARLY_FULL = 0.9  # of its memory

_CUDA_13 = 13_000  # since which the later fields have these numbers
_FIELDS = (
    ("NVML_FI_DEV_PERF_POLICY_THERMAL", 0),
    ("NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", _CUDA_13),
    ("NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", _CUDA_13),
    ("NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", _CUDA_13),
)


class DeviceState(msgspec.Struct, frozen=True):
    """A GPU at one moment. None is what it does not report."""

    sm_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    used_bytes: int | None = None  # of its memory, by all processes
    total_bytes: int | None = None


def full_memory(states: Sequence[DeviceState]) -> tuple[Notice, ...]:
    """Warn where a process left little memory of its GPU free, since allocators then search, free and wait."""
    for state in states[1:]:
        if state.used_bytes is not None and state.total_bytes and state.used_bytes > _NEARLY_FULL * state.total_bytes:
            used, total = quantity_text.size(state.used_bytes), quantity_text.size(state.total_bytes)
            text = f"{used} of the GPU's {total} were in use after it was measured; times near the limit may be longer"
            return (Notice("W_GPU_MEMORY", text),)
    return ()


class DeviceSlowdown:
    """From entry to ``readings``; it reads nothing of a processor, nor of an instance of a divided device.

    NVML is asked between turns only, never while a contestant is timed.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._opened = ExitStack()
        self._nvml: Any = None
        self._handle: Any = None
        self._looks = self._slowed_looks = 0

    def __enter__(self) -> DeviceSlowdown:
        self._nvml, self._handle = self._of(self._device)
        self._began_s = time.monotonic()
        self._before_ns = self._counters_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self._handle = None
        self._opened.close()

    @contextmanager
    def turn(self, states: list[DeviceState]) -> Iterator[None]:
        """Keep in ``states`` the one before the first turn and the one after the last, where there is a device."""
        if self._handle is not None and not states:
            states.append(self._state())
        yield
        if self._handle is not None:
            self._look()
            states[1:] = [self._state()]

    def readings(self) -> dict[str, float]:
        """Return the share of the time in which it was slowed down, by its counters or else by what was seen."""
        if self._handle is None:
            return {}
        elapsed_ns = max(1e9 * (time.monotonic() - self._began_s), 1.0)
        after_ns = self._counters_ns()
        grown_ns = [after_ns[name] - self._before_ns[name] for name in after_ns.keys() & self._before_ns.keys()]
        seen = self._slowed_looks / self._looks if self._looks else 0.0
        counted = max(grown_ns, default=0.0) / elapsed_ns  # what two counters count may be the same time
        return {SLOWED: min(max(seen, counted), 1.0)}

    def _of(self, device: str) -> tuple[Any, Any]:
        board = "" if device == "cpu" else board_of(device)
        if not isinstance(board, Board) or not board.is_whole:
            return None, None
        try:
            nvml = self._opened.enter_context(open_nvml())
        except NvmlAbsent:
            return None, None
        return nvml, or_none(nvml.nvmlDeviceGetHandleByIndex, board.index)

    def _look(self) -> None:
        reasons = or_none(self._nvml.nvmlDeviceGetCurrentClocksEventReasons, self._handle)
        if reasons is None:  # the name before CUDA 12.2
            reasons = or_none(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons, self._handle)
        if reasons is not None:
            self._looks += 1
            self._slowed_looks += bool(reasons & (SLOWED_BY_HEAT | SLOWED_BY_POWER))

    def _state(self) -> DeviceState:
        nvml = self._nvml
        milliwatts = or_none(nvml.nvmlDeviceGetPowerUsage, self._handle)
        memory = device_memory(nvml, self._handle)
        return DeviceState(
            or_none(nvml.nvmlDeviceGetClockInfo, self._handle, nvml.NVML_CLOCK_SM),
            or_none(nvml.nvmlDeviceGetTemperature, self._handle, nvml.NVML_TEMPERATURE_GPU),
            None if milliwatts is None else milliwatts / 1000,
            None if memory is None else memory.used,
            None if memory is None else memory.total,
        )

    def _counters_ns(self) -> dict[str, float]:
        """Read the counters of time that the device supports."""
        if self._handle is None:
            return {}
        release = or_none(self._nvml.nvmlSystemGetCudaDriverVersion_v2) or 0
        known = [name for name, since in _FIELDS if release >= since and hasattr(self._nvml, name)]
        values = or_none(
            self._nvml.nvmlDeviceGetFieldValues, self._handle, [getattr(self._nvml, name) for name in known]
        )
        return {
            name: float(value.value.ullVal)
            for name, value in zip(known, values or (), strict=False)
            if value.nvmlReturn == self._nvml.NVML_SUCCESS
        }
