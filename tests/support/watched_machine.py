"""A machine of files whose sensors report what a test wants, and the fake NVML."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from fairlap.watch.readings import ReadingsNow
from processes_seen import wait_until

_FAKES = Path(os.environ.get("FAIRLAP_FAKES", Path(__file__).parents[2] / "build/release/cpp/fakes"))
WRAPS_AT_UJ = 262_143_328_850
NO_NVML = "/nowhere/nvml.so"


class WatchedMachine:
    """A processor with one power zone, stolen time, pressure and memory, but no clocks and no thermal counters."""

    def __init__(self, folder: Path) -> None:
        self.root = str(folder)
        self._folder = folder
        self.energy_uj(5_000_000)
        self._write("sys/class/powercap/intel-rapl:0/name", "package-0\n")
        self._write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", f"{WRAPS_AT_UJ - 1}\n")
        self.stolen_ticks(700)
        for resource, seconds in (("cpu", 10), ("memory", 2), ("io", 3)):
            self.waited_s(resource, seconds)
        self._write("proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 12582912 kB\n")

    def energy_uj(self, energy: int) -> None:
        # One number of fixed length over another, so that a reader never sees an empty file.
        self._write("sys/class/powercap/intel-rapl:0/energy_uj", f"{energy:018d}\n")

    def stolen_ticks(self, ticks: int) -> None:
        self._write("proc/stat", f"cpu  1 2 3 4 5 6 7 {ticks:012d} 0 0\n")

    def waited_s(self, resource: str, seconds: float) -> None:
        line = f"avg10=0.00 avg60=0.00 avg300=0.00 total={round(seconds * 1e6):015d}"
        self._write(f"proc/pressure/{resource}", f"some {line}\nfull {line}\n")

    def _write(self, path: str, text: str) -> None:
        file = self._folder / path
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        with file.open("r+") as opened:
            opened.write(text)


def next_interval(readings: ReadingsNow) -> None:
    """End an interval that has readings, however slow this machine is."""
    before = readings.sampler.counts
    kinds = ("slow_rounds", "rare_rounds")
    wait_until(lambda: all(readings.sampler.counts[kind] >= before[kind] + 2 for kind in kinds))
    readings.end_interval()


def fake_nvml_path() -> str:
    library = _FAKES / "libfairlap_fake_nvml.so"
    assert library.exists(), f"{library} is missing; `make test` builds it"
    return str(library)


def fresh_fake_nvml() -> ctypes.CDLL:
    fake = ctypes.CDLL(fake_nvml_path())
    fake.fake_nvml_power_constant.argtypes = [ctypes.c_int, ctypes.c_double]
    fake.fake_nvml_set_reading.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64]
    fake.fake_nvml_set_field.argtypes = [
        ctypes.c_int,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_uint64,
    ]
    fake.fake_nvml_advance.argtypes = [ctypes.c_int64]
    fake.fake_nvml_reset()
    return fake
