"""How often a difference of 1 % between short callables is found, and how often equal ones are called different.

C functions that count to N and to 1.01 N, and Python functions that do, of 1, 20 and 100 us, are compared by
``fairlap.compare`` with a budget of half a second. Each comparison of different ones runs in a new process, as a user's
would; the budget begins there after the import. Equal C functions are compared many times in one process, at a margin
so small that equivalence seldom ends a comparison early. Prints the table of docs/how-to/compare-callables.md.

Run it with ``python tests/bench/small_differences.py``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import fairlap
import numpy as np

MICROSECONDS = (1, 20, 100)
LANGUAGES = ("C", "Python")
_SOURCE = """
#include <stdint.h>
static volatile uint64_t sink;
uint64_t short_turns, long_turns;
static void spin(uint64_t turns) {
  uint64_t x = sink | 1;
  for (; turns != 0; --turns) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    __asm__ volatile("" : "+r"(x));
  }
  sink = x;
}
void of_short(void) { spin(short_turns); }
void of_long(void) { spin(long_turns); }
"""


def compiled(folder: Path) -> Path:
    (folder / "spin.c").write_text(_SOURCE)
    library = folder / "spin.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(folder / "spin.c"), "-o", str(library)], check=True)
    return library


def c_functions(library: Path, microseconds: float, ratio: float) -> dict[str, Callable[[], object]]:
    """``short`` and ``long``, which takes ``ratio`` times as many turns."""
    spin = ctypes.CDLL(str(library))
    turns = {name: ctypes.c_uint64.in_dll(spin, f"{name}_turns") for name in ("short", "long")}
    functions: dict[str, Callable[[], object]] = {"short": spin.of_short, "long": spin.of_long}
    for function in (spin.of_short, spin.of_long):
        function.restype = None
    turns["short"].value = 100_000
    turns["short"].value = round(100_000 * microseconds * 1e3 / fairlap.measure(spin.of_short, samples=50).median_ns)
    turns["long"].value = round(ratio * turns["short"].value)
    return functions


def python_functions(microseconds: float, ratio: float) -> dict[str, Callable[[], object]]:
    """At least 100 turns, so that 1 % is a whole one: the shortest takes longer than a microsecond."""

    def spinning(turns: int) -> Callable[[], object]:
        def spin() -> None:
            for _ in range(turns):
                pass

        return spin

    per_turn_ns = fairlap.measure(spinning(10_000), samples=50).median_ns / 10_000
    turns = max(100, 100 * round(microseconds * 1e3 / per_turn_ns / 100))
    return {"short": spinning(turns), "long": spinning(round(ratio * turns))}


def one(language: str, library: Path, microseconds: float, ratio: float, budget_s: float) -> None:
    """Print what one comparison in this process found."""
    functions = c_functions(library, microseconds, ratio) if language == "C" else python_functions(microseconds, ratio)
    found = fairlap.compare(functions, budget=budget_s)
    if not found.comparisons:  # the machine let it have one block
        print(json.dumps(["inconclusive", 1.0, found.elapsed_s, found.blocks]))
        return
    comparison = found.between("long", "short")
    print(json.dumps([comparison.verdict.value, comparison.ratio, found.elapsed_s, found.blocks]))


def different(library: Path, runs: int, budget_s: float) -> None:
    print("| callable | difference found | wrong sign | ratio, median | seconds, median | longest | blocks, median |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for language in LANGUAGES:
        for microseconds in MICROSECONDS:
            command = [sys.executable, __file__, "--one", language, str(microseconds), str(library), str(budget_s)]
            lines = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(runs)]
            verdicts, ratios, seconds, blocks = zip(*map(json.loads, lines), strict=True)
            count = Counter(verdicts)
            print(
                f"| {language}, {microseconds} µs | {count['slower']} of {runs} | {count['faster']} | "
                f"{np.median(ratios):.4f} | {np.median(seconds):.2f} | {max(seconds):.2f} | {np.median(blocks):g} |",
                flush=True,
            )


def equal(library: Path, runs: int, budget_s: float, margin: float) -> None:
    verdicts: Counter[str] = Counter()
    blocks: list[int] = []
    for run in range(runs):
        functions = c_functions(library, MICROSECONDS[run % len(MICROSECONDS)], 1.0)
        function = functions["short"]
        found = fairlap.compare({"a": function, "b": function}, budget=budget_s, margin=margin)
        verdicts[found.comparisons[0].verdict.value if found.comparisons else "inconclusive"] += 1
        blocks.append(found.blocks)
    claimed = verdicts["faster"] + verdicts["slower"]
    print(
        f"equal C functions, margin {margin:.2%}, budget {budget_s:g} s: {claimed} of {runs} called different "
        f"({claimed / runs:.1%}), {verdicts['equivalent']} equivalent, {verdicts['inconclusive']} inconclusive; "
        f"{np.median(blocks):g} blocks in the median"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="of each pair of different callables")
    parser.add_argument("--equal", type=int, default=400, help="comparisons of equal ones")
    parser.add_argument("--budget", type=float, default=0.5)
    parser.add_argument("--equal-budget", type=float, default=0.2)
    parser.add_argument("--margin", type=float, default=0.0005, help="of equal ones")
    parser.add_argument("--one", nargs=4, metavar=("LANGUAGE", "MICROSECONDS", "LIBRARY", "BUDGET"))
    given = parser.parse_args()
    if given.one:
        language, microseconds, library, budget = given.one
        one(language, Path(library), float(microseconds), 1.01, float(budget))
        return
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        loads = [os.getloadavg()[0]]
        began_s = time.monotonic()
        if given.runs:
            different(library, given.runs, given.budget)
            loads.append(os.getloadavg()[0])
        if given.equal:
            equal(library, given.equal, given.equal_budget, given.margin)
            loads.append(os.getloadavg()[0])
        shown = ", ".join(f"{load:.1f}" for load in loads)
        print(f"{os.cpu_count()} cores, load {shown}; {time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
