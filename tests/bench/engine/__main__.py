"""What one sample costs, and how far its reading is from the truth: fairlap and other timers, in one run.

Cost per sample is the wall time of a whole run divided by its samples, less the work's own length. Bias is
the median reading less that length. A timer of Python callables reaches the native spins through ctypes, and
its bias includes that call. All timers take turns in a new random order each time; the table shows medians over
the turns. Run it with ``make bench-engine``.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import fairlap
import timers
from fairlap.engine.floors import cpu_floor

TURNS = 5
MANY_SAMPLES = 10_000_000


def compiled(folder: Path) -> Path:
    library = folder / "libspin.so"
    source = Path(__file__).with_name("spin.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def side_by_side(library: Path) -> dict[str, dict[str, list[timers.Reading]]]:
    works = timers.works(timers.load(library))
    readings: dict[str, dict[str, list[timers.Reading]]] = {
        name: {work.name: [] for work in works} for name in timers.TIMERS
    }
    draw = random.Random(1)
    for _ in range(TURNS):
        for work in works:
            for name in draw.sample(list(timers.TIMERS), len(timers.TIMERS)):
                readings[name][work.name].append(timers.TIMERS[name](work, library))
    return readings


def table(readings: dict[str, dict[str, list[timers.Reading]]], works: list[timers.Work]) -> str:
    heads = "".join(f" {work.name + ' cost':>16} {'bias':>8}" for work in works)
    lines = [f"{'ns per sample':<26}{heads}   cost / perf_counter_ns loop, empty call"]
    own_cost = {
        name: statistics.median(reading.cost_per_sample_ns for reading in by_work["empty"])
        for name, by_work in readings.items()
    }
    for name, by_work in readings.items():
        cells = ""
        for work in works:
            cost = statistics.median(reading.cost_per_sample_ns for reading in by_work[work.name]) - work.length_ns
            bias = statistics.median(reading.median_ns for reading in by_work[work.name]) - work.length_ns
            cells += f" {cost:16,.0f} {bias:8,.0f}"
        lines.append(f"{name:<26}{cells}   {own_cost[name] / own_cost['perf_counter_ns loop']:.2f}")
    return "\n".join(lines)


class Noted(ctypes.Structure):
    """What note_allocations leaves behind; see spin.c."""

    _fields_ = (("calls", ctypes.c_uint64), ("first", ctypes.c_uint64), ("latest", ctypes.c_uint64))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def many_samples(library: Path) -> None:
    """Ten million samples, and what they cost in faults, allocations and memory. Needs spin.c preloaded."""
    noted = Noted()
    native = timers.load(library)
    fairlap.measure(native.note_allocations, args=(noted,), samples=1000)
    noted.calls = 0
    before = resident_bytes()
    result = fairlap.measure(native.note_allocations, args=(noted,), samples=MANY_SAMPLES, warmup=0, calls_per_sample=1)
    grown = resident_bytes() - before
    print(
        json.dumps(
            {
                "samples": result.samples,
                "page faults in the loop": result.counts["thread_minor_faults"],
                "allocations in the loop": noted.latest - noted.first,
                "bytes per sample": round(grown / result.samples, 2),
                "stopped by": result.stopped_by,
            }
        )
    )


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "--many-samples":
        many_samples(Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        floor = cpu_floor()
        print(
            f"clock {floor['source']}: quantum {floor['quantum_ns']:.1f} ns, overhead {floor['overhead_ns']:.1f} ns, "
            f"bias {floor['bias_ns']:.1f} ns (subtracted)\n"
        )
        print(table(side_by_side(library), timers.works(timers.load(library))), "\n", sep="")
        subprocess.run(
            [sys.executable, __file__, "--many-samples", library],
            check=True,
            env={**os.environ, "LD_PRELOAD": str(library)},
        )


if __name__ == "__main__":
    main()
