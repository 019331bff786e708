"""What the feeder costs, beside the machine's own copies and beside other pipelines, in one run with one table.

Every part runs in a process of its own and its rivals take turns, so that a busy neighbour meets all of them. Run it
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


def told_by(part: str, *words: str) -> Any:
    """What a part prints last, as JSON; None when it could not run."""
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
        told = told_by("memory_rate", order)
        if told is None:
            continue
        shares = [own / peer for own, peer in zip(told["feeder"], told["memcpy"], strict=True)]
        rate, peer = statistics.median(told["feeder"]), statistics.median(told["memcpy"])
        measured = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        what = f"share of parallel memcpy, {order}: {rate / 1e9:.1f} of {peer / 1e9:.1f} GB/s"
        lines.append(line(what, measured, "at least 0.9"))
    return lines


def gathers() -> list[str]:
    told = told_by("gather_rate")
    if told is None:
        return []
    medians = {name: statistics.median(rates) for name, rates in told["samples_per_s"].items()}
    lines = [line(f"samples/s, {name}", f"{rate:,.0f}", "") for name, rate in medians.items()]
    ours, theirs = (max(rate for name, rate in medians.items() if name.startswith(who)) for who in _RIVALS)
    lines.append(line("best feeder against the best DataLoader", f"{ours / theirs:.1f} times", "at least 3 times"))
    off = max(told["stalls_off"])
    lines.append(line("parts of the stall times off a stopwatch's wall", f"{off:.3%}", "at most 1 %"))
    return lines


def hand_overs() -> list[str]:
    lines = []
    for name in ("native", *FRAMEWORKS):
        told = told_by("hand_over", name)
        goal = "at most 1 us, hot" if name == "native" else "at most 5 us, hot"
        for way, figures in (told or {}).items():
            hot, cold = figures["hot_ns"] / 1e3, figures["cold_ns"] / 1e3
            lines.append(line(f"hand-over, {name}: {way}", f"{hot:.2f} us hot, {cold:.1f} cold", goal))
    return lines


if __name__ == "__main__":
    print(line("median, range over turns in brackets", "measured", "goal"))
    for part in (copies, gathers, hand_overs):
        print("\n".join(part()), flush=True)
