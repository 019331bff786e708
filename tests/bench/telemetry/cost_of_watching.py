"""What watching a machine costs: fairlap's sampler, Zeus and CodeCarbon, in one run.

    python tests/bench/telemetry/cost_of_watching.py [--peers PYTHON] [--pairs 20] [--seconds 10]

All watch one device of the fake NVML, whose every call keeps a core busy for a given time. fairlap runs at its
default rate: power 20 times a second, counters and clocks 10 times. Zeus (instant power alone) and CodeCarbon are
set to 10 times a second. ``waker`` is a thread that wakes 20 times a second and does nothing, which shows what waking
alone costs on this machine; ``nothing`` shows what the method reads without a subject.

Disturbance: a loop of pieces of about 100 us, native, with and without the subject in pairs in random order.
Run it with ``make bench-telemetry``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

_TOP = Path(__file__).parents[3]
_HERE = Path(__file__).parent
_PIECE_NS = 100_000


def compiled(folder: Path) -> Path:
    fakes = Path(os.environ.get("FAIRLAP_FAKES", _TOP / "build/release/cpp/fakes"))
    loop = folder / "libloop.so"
    smi = folder / "nvidia-smi"  # CodeCarbon looks for NVML only where it finds this
    smi.write_text("#!/bin/sh\nexit 0\n")
    smi.chmod(0o755)
    shared = ["cc", "-O2", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*shared, "-o", loop, _HERE / "loop.c"], check=True)
    board: list[str | Path] = [
        _HERE / "board.c",
        f"-I{_TOP / 'cpp'}",
        f"-L{fakes}",
        "-lfairlap_fake_nvml",
        f"-Wl,-rpath,{fakes}",
    ]
    subprocess.run([*shared, "-o", str(folder / "libnvidia-ml.so.1"), *board], check=True)
    return loop


def turns_of_a_piece(loop: Path) -> int:
    library = ctypes.CDLL(str(loop))
    library.run_loop.argtypes = [ctypes.POINTER(ctypes.c_double), ctypes.c_int64, ctypes.c_int64]
    lengths = (ctypes.c_double * 200)()
    library.run_loop(lengths, 200, 100_000)
    return int(100_000 * _PIECE_NS / median(lengths))


def measure(
    python: str, subject: str, settings: dict[str, object], folder: Path, call_us: float
) -> dict[str, Any] | str:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "PATH": f"{folder}:{os.environ['PATH']}",
        "BENCH_NVML_CALL_NS": str(int(call_us * 1000)),
    }
    worker = subprocess.run(
        [python, _HERE / "worker.py", subject, json.dumps(settings)], env=environment, capture_output=True, text=True
    )
    for line in worker.stdout.splitlines():
        if line.startswith("answer:"):
            answer: dict[str, Any] = json.loads(line.removeprefix("answer:"))
            return answer
    return (worker.stderr.strip().splitlines() or ["it gave no answer"])[-1]


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Compute the median in percent above 1, and its 95 % interval over resampled pairs."""
    draw = random.Random(1)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return tuple(100 * (value - 1) for value in (median(ratios), medians[50], medians[-51]))  # type: ignore[return-value]


def line_of(name: str, call_us: float | None, answer: dict[str, Any] | str) -> str:
    head = f"{name:<12} {'' if call_us is None else f'{call_us:g} us':>8}"
    if isinstance(answer, str):
        return f"{head}  absent: {answer}"
    middle, low, high = interval(answer["median_ratios"])
    tail, tail_low, tail_high = interval(answer["p99_ratios"])
    mib = 1024 * 1024
    memory = f"{answer['memory_bytes'] / mib:>9.1f} {answer['imports_bytes'] / mib:>9.1f}"
    disturbed = f"{middle:>+7.3f} % [{low:+.3f}, {high:+.3f}]   {tail:>+7.2f} % [{tail_low:+.2f}, {tail_high:+.2f}]"
    return f"{head} {100 * answer['cpu_share']:>9.3f} % {memory}   {disturbed}"


def main() -> int:
    parser = argparse.ArgumentParser(description="What watching a machine costs, compared with peers.")
    parser.add_argument("--peers", help="an interpreter that has zeus and codecarbon")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--call-us", type=float, nargs="*", default=[2.0, 10.0, 50.0])
    parser.add_argument("--peers-call-us", type=float, default=10.0)
    options = parser.parse_args()
    trials: list[tuple[str, str, float | None]] = [(sys.executable, "nothing", None), (sys.executable, "waker", None)]
    trials += [(sys.executable, "fairlap", call_us) for call_us in options.call_us]
    if options.peers:
        trials += [(options.peers, peer, options.peers_call_us) for peer in ("zeus", "codecarbon")]
    print(f"load of this machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    heads = f"{'a call':>8} {'of a core':>11} {'MiB':>9} {'imports':>9}   {'median of 100 us, 95 %':<28}"
    print(f"{'':<12} {heads} p99, 95 %")
    with tempfile.TemporaryDirectory() as folder:
        loop = compiled(Path(folder))
        settings = {
            "library": str(loop),
            "turns": turns_of_a_piece(loop),
            "loops": 3000,
            "pairs": options.pairs,
            "seconds": options.seconds,
        }
        for python, subject, call_us in trials:
            print(
                line_of(subject, call_us, measure(python, subject, settings, Path(folder), call_us or 0.0)), flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
