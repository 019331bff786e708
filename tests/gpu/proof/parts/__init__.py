"""The parts of the proof, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    number: int
    name: str
    title: str
    module: str
    seconds: float  # the limit of one run, below ten minutes with start and end; all together stay below TOTAL_S


_HERE = "tests.gpu.proof.parts"

PARTS = (
    Part(1, "tests", "The tests of tests/gpu", f"{_HERE}.gpu_tests", 250),
    Part(2, "truth", "Truth: kernels of known length", f"{_HERE}.truth", 100),
    Part(3, "timers", "Comparison with other timers", f"{_HERE}.other_timers", 200),
    Part(4, "frameworks", "Which method works for which framework", f"{_HERE}.frameworks", 150),
    Part(5, "energy", "Power and energy", f"{_HERE}.telemetry", 190),
    Part(6, "feeding", "Feeding", f"{_HERE}.feeding", 130),
    Part(7, "roofs", "Roofs and profiles", f"{_HERE}.roofs", 70),
    Part(8, "race", "A race", f"{_HERE}.race", 540),
    Part(9, "use", "Load, precision, memory and a rank over NCCL", f"{_HERE}.use", 250),
)
TOTAL_S = 1740.0
"""All parts in one go, compiling included. The race has what the others leave, and at least four minutes."""


def parts_named(text: str) -> tuple[Part, ...]:
    """Parse a selection such as ``truth,race``, ``1,3`` or ``2-4``; empty means all."""
    if not text:
        return PARTS
    wanted: set[int] = set()
    for piece in text.split(","):
        named = next((part.number for part in PARTS if part.name == piece.strip()), None)
        if named is not None:
            wanted.add(named)
            continue
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            names = ", ".join(part.name for part in PARTS)
            raise ValueError(f"parts must be among {names}, or numbers such as 1,3 or 2-4 (got {text!r})")
        wanted |= set(range(int(first), int(last if dash else first) + 1))
    unknown = wanted - {part.number for part in PARTS}
    if unknown:
        raise ValueError(f"part must be between 1 and {len(PARTS)} (got {min(unknown)})")
    return tuple(part for part in PARTS if part.number in wanted)
