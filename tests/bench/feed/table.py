"""What the feeder costs, compared with the machine's own copies and with other pipelines, in one run and one table.

Every part runs in a separate process and its rivals take turns, so that a busy neighbour affects all of them. Run it
with ``make bench-feed``.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

FRAMEWORKS = ("torch", "jax", "tensorflow", "onnxruntime", "openvino")
_RIVALS = ("feeder", "DataLoader")
HERE = Path(__file__).parent


def figures_of(part: str, *words: str) -> Any:
    """Return what a part prints last, as JSON, or None if it could not run."""
    program = [sys.executable, str(HERE / f"{part}.py"), *words]
    done = subprocess.run(program, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{part} {' '.join(words)}: {done.stderr.strip().splitlines()[-1:] or 'failed'}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def line(what: str, measured: str, goal: str) -> str:
    return f"{what:<58} {measured:>26}   {goal}"


def copies() -> list[str]:
    lines = []
    for order in ("in order", "shuffled"):
        figures = figures_of("memory_rate", order)
        if figures is None:
            continue
        shares = [own / peer for own, peer in zip(figures["feeder"], figures["memcpy"], strict=True)]
        rate, peer = statistics.median(figures["feeder"]), statistics.median(figures["memcpy"])
        measured = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        what = f"share of parallel memcpy, {order}: {rate / 1e9:.1f} of {peer / 1e9:.1f} GB/s"
        lines.append(line(what, measured, "at least 0.9"))
    return lines


def gathers() -> list[str]:
    figures = figures_of("gather_rate")
    if figures is None:
        return []
    medians = {name: statistics.median(rates) for name, rates in figures["samples_per_s"].items()}
    lines = [line(f"samples/s, {name}", f"{rate:,.0f}", "") for name, rate in medians.items()]
    ours, theirs = (max(rate for name, rate in medians.items() if name.startswith(who)) for who in _RIVALS)
    lines.append(line("best feeder against the best DataLoader", f"{ours / theirs:.1f} times", "at least 3 times"))
    off = max(figures["stalls_off"])
    lines.append(line("parts of the stall times off a stopwatch", f"{off:.3%}", "at most 1 %"))
    return lines


def hand_overs() -> list[str]:
    lines = []
    for name in ("native", *FRAMEWORKS):
        ways = figures_of("hand_over", name)
        goal = "at most 1 us, hot" if name == "native" else "at most 5 us, hot"
        for way, figures in (ways or {}).items():
            hot, cold = figures["hot_ns"] / 1e3, figures["cold_ns"] / 1e3
            lines.append(line(f"hand-over, {name}: {way}", f"{hot:.2f} us hot, {cold:.1f} cold", goal))
    return lines


if __name__ == "__main__":
    print(line("median, range over turns in brackets", "measured", "goal"))
    for part in (copies, gathers, hand_overs):
        print("\n".join(part()), flush=True)
