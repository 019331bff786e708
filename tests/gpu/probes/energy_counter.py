"""Measure what NVML's sensors cost to read, how often each is new, and whether the energy counter is complete.

The energy counter may see what power misses.

Through ctypes alone, as a second opinion on the engine's sampler.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

from ..proof.driver import PrimaryContext, Spinner
from ..proof.json_lines import report, run_program
from ..proof.record import NotHere

READ_S = float(os.environ.get("FAIRLAP_PROBE_SECONDS", "3"))
BURSTS_MS = tuple(burst_ms for burst_ms in (20, 200, 1_000, 5_000) if burst_ms <= 2_000 * READ_S)
_POWER_AVERAGE, _POWER_INSTANT = 185, 186


class _FieldValue(ctypes.Structure):
    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp_us", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("kind", ctypes.c_uint),
        ("status", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


class Nvml:
    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ.get("FAIRLAP_LIBNVML") or "libnvidia-ml.so.1")
        self._device = ctypes.c_void_p()
        for code in (
            self._library.nvmlInit_v2(),
            self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(0), ctypes.byref(self._device)),
        ):
            if code != 0:
                raise OSError(f"NVML would not start: error {code}")

    def number(self, function: str, *before: Any, kind: Any = ctypes.c_uint) -> int | None:
        out = kind()
        code = getattr(self._library, function)(self._device, *before, ctypes.byref(out))
        return int(out.value) if code == 0 else None

    def field(self, number: int) -> int | None:
        value = _FieldValue(field=number)
        code = self._library.nvmlDeviceGetFieldValues(self._device, ctypes.c_int(1), ctypes.byref(value))
        if code != 0 or value.status != 0:
            return None
        # Powers are unsigned ints in the union's first word; the bytes above them are undefined.
        return int(value.value & 0xFFFFFFFF if value.kind == 1 else value.value)

    def energy_mj(self) -> int | None:
        return self.number("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong)

    def sensors(self) -> dict[str, Callable[[], int | None]]:
        clock = ctypes.c_int(1)
        return {
            "instant power (field 186)": lambda: self.field(_POWER_INSTANT),
            "average power (field 185)": lambda: self.field(_POWER_AVERAGE),
            "power (nvmlDeviceGetPowerUsage)": lambda: self.number("nvmlDeviceGetPowerUsage"),
            "energy counter": self.energy_mj,
            "SM clock": lambda: self.number("nvmlDeviceGetClockInfo", clock),
            "temperature": lambda: self.number("nvmlDeviceGetTemperature", ctypes.c_int(0)),
        }


def main() -> None:
    try:
        nvml = Nvml()
    except OSError as absent:
        raise NotHere(str(absent)) from None
    context = PrimaryContext()
    load = Load(context)
    for name, read in nvml.sensors().items():
        with load:
            _report_sensor(name, read)
    for burst_ms in BURSTS_MS:
        _report_burst(nvml, load, burst_ms / 1e3)


class Load:
    """One thread of the device kept spinning: little power, but some, and the same for as long as wanted."""

    def __init__(self, context: PrimaryContext) -> None:
        self._context = context
        self._spinner, self._stream = Spinner(), context.new_stream()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        self._ending.clear()
        self._thread = threading.Thread(target=self._keep_busy)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._context.synchronize()

    def _keep_busy(self) -> None:
        PrimaryContext()  # current on this thread too
        while not self._ending.is_set():
            for _ in range(4):
                self._spinner.spin_ns(self._stream, 2_000_000)
            time.sleep(0.008)


def _report_sensor(name: str, read: Callable[[], int | None]) -> None:
    costs, changes, last, calls = [], [], read(), 0
    begun = time.perf_counter()
    while time.perf_counter() - begun < READ_S:
        before = time.perf_counter_ns()
        value = read()
        after = time.perf_counter_ns()
        calls += 1
        costs.append(after - before)
        if value is not None and value != last:
            changes.append(after)
            last = value
        time.sleep(0.0005)
    if last is None:
        report(sensor=name, note="not available on this board")
        return
    gaps = [(late - early) / 1e6 for early, late in pairwise(changes)]
    report(
        sensor=name,
        call_ns=median(costs),
        slowest_call_ns=max(costs),
        new_every_ms=median(gaps) if gaps else None,
        calls=calls,
        note="" if gaps else "it did not change while it was read",
    )


def _report_burst(nvml: Nvml, load: Load, seconds: float) -> None:
    """Compare the counter over a burst with instant power, read as fast as possible and integrated."""
    time.sleep(0.3)
    before, begun = nvml.energy_mj(), time.perf_counter()
    joules, previous = 0.0, begun
    with load:
        while previous - begun < seconds:
            power_mw = nvml.field(_POWER_INSTANT) or nvml.number("nvmlDeviceGetPowerUsage")
            at = time.perf_counter()
            joules += (power_mw or 0) / 1e3 * (at - previous)
            previous = at
            time.sleep(0.001)
        after = nvml.energy_mj()
    counted = (after - before) / 1e3 if after is not None and before is not None else None
    report(
        burst_s=previous - begun,
        counter_j=counted,
        integral_j=joules or None,
        counter_over_integral=counted / joules if counted is not None and joules else None,
    )


if __name__ == "__main__":
    run_program(main)
