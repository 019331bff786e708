"""Whether a GPU was slowed down while contestants were measured, and its clock, temperature and power around each turn.

A GPU that is too hot, or that the board or the power supply holds back, runs at a fraction of its clock. NVML counts
the time on devices that support it, and says at any moment what holds the clock back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.machine.hardware.cuda_devices import Board, board_of, each_device
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
    device: str = ""  # which one, such as "cuda:1"; not kept in older runs
    sensor: str = ""  # of its energy: "nvml:3"


def full_memory(states: Sequence[DeviceState]) -> tuple[Notice, ...]:
    """Warn where a process left little memory of its GPU free, since allocators then search, free and wait.

    Of ``states`` the first half is before, the second after.
    """
    for state in states[len(states) // 2 :]:
        if state.used_bytes is not None and state.total_bytes and state.used_bytes > _NEARLY_FULL * state.total_bytes:
            used, total = quantity_text.size(state.used_bytes), quantity_text.size(state.total_bytes)
            text = f"{used} of the GPU's {total} were in use after it was measured; times near the limit may be longer"
            return (Notice("W_GPU_MEMORY", text),)
    return ()


@dataclass
class _Watched:
    """One GPU, and what was seen of it between turns."""

    device: str
    board: int
    handle: Any
    before_ns: dict[str, float] = field(default_factory=dict)
    looks: int = 0
    slowed_looks: int = 0


class DeviceSlowdown:
    """Of one GPU, or of several ("cuda:0,cuda:1"), from entry to ``readings``.

    It reads nothing of a processor, nor of an instance of a divided device. NVML is asked between turns only, never
    while a contestant is timed.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._opened = ExitStack()
        self._nvml: Any = None
        self._watched: list[_Watched] = []

    def __enter__(self) -> DeviceSlowdown:
        self._watched = self._found()
        self._began_s = time.monotonic()
        for each in self._watched:
            each.before_ns = self._counters_ns(each)
        return self

    def __exit__(self, *_: object) -> None:
        self._watched = []
        self._opened.close()

    @contextmanager
    def turn(self, states: list[DeviceState]) -> Iterator[None]:
        """Keep in ``states`` those before the first turn and those after the last, of every device that there is."""
        if not states:
            states += map(self._state, self._watched)
        yield
        for each in self._watched:
            self._look(each)
        if self._watched:
            states[len(self._watched) :] = map(self._state, self._watched)

    def readings(self) -> dict[str, float]:
        """Return the share of the time in which one was slowed down, by its counters or else by what was seen.

        Of several it is that of the one that was slowed down most, for which the others wait.
        """
        if not self._watched:
            return {}
        elapsed_ns = max(1e9 * (time.monotonic() - self._began_s), 1.0)
        return {SLOWED: max(self._slowed_share(each, elapsed_ns) for each in self._watched)}

    def _slowed_share(self, watched: _Watched, elapsed_ns: float) -> float:
        before_ns, after_ns = watched.before_ns, self._counters_ns(watched)
        grown_ns = [after_ns[name] - before_ns[name] for name in after_ns.keys() & before_ns.keys()]
        seen = watched.slowed_looks / watched.looks if watched.looks else 0.0
        counted = max(grown_ns, default=0.0) / elapsed_ns  # what two counters count may be the same time
        return min(max(seen, counted), 1.0)

    def _found(self) -> list[_Watched]:
        boards = {} if self._device == "cpu" else {each: board_of(each) for each in each_device(self._device)}
        whole = {name: board.index for name, board in boards.items() if isinstance(board, Board) and board.is_whole}
        if not whole:
            return []
        try:
            self._nvml = self._opened.enter_context(open_nvml())
        except NvmlAbsent:
            return []
        handles = {name: or_none(self._nvml.nvmlDeviceGetHandleByIndex, index) for name, index in whole.items()}
        return [_Watched(name, whole[name], handle) for name, handle in handles.items() if handle is not None]

    def _look(self, watched: _Watched) -> None:
        reasons = or_none(self._nvml.nvmlDeviceGetCurrentClocksEventReasons, watched.handle)
        if reasons is None:  # the name before CUDA 12.2
            reasons = or_none(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons, watched.handle)
        if reasons is not None:
            watched.looks += 1
            watched.slowed_looks += bool(reasons & (SLOWED_BY_HEAT | SLOWED_BY_POWER))

    def _state(self, watched: _Watched) -> DeviceState:
        nvml, handle = self._nvml, watched.handle
        milliwatts = or_none(nvml.nvmlDeviceGetPowerUsage, handle)
        memory = device_memory(nvml, handle)
        return DeviceState(
            or_none(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            or_none(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            None if milliwatts is None else milliwatts / 1000,
            None if memory is None else memory.used,
            None if memory is None else memory.total,
            watched.device,
            f"nvml:{watched.board}",
        )

    def _counters_ns(self, watched: _Watched) -> dict[str, float]:
        """Read the counters of time that the device supports."""
        release = or_none(self._nvml.nvmlSystemGetCudaDriverVersion_v2) or 0
        known = [name for name, since in _FIELDS if release >= since and hasattr(self._nvml, name)]
        values = or_none(
            self._nvml.nvmlDeviceGetFieldValues, watched.handle, [getattr(self._nvml, name) for name in known]
        )
        return {
            name: float(value.value.ullVal)
            for name, value in zip(known, values or (), strict=False)
            if value.nvmlReturn == self._nvml.NVML_SUCCESS
        }
