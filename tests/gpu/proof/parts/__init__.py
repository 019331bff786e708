"""The parts of the proof, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    number: int
    title: str
    module: str
    seconds: float = 540.0  # the limit of one run: below ten minutes including start and end


_HERE = "tests.gpu.proof.parts"

PARTS = (
    Part(1, "The tests of tests/gpu", f"{_HERE}.gpu_tests"),
    Part(2, "Truth: kernels of known length", f"{_HERE}.truth"),
    Part(3, "Comparison with other timers", f"{_HERE}.other_timers"),
    Part(4, "Which method works for which framework", f"{_HERE}.frameworks"),
    Part(5, "Power and energy", f"{_HERE}.telemetry"),
    Part(6, "Feeding", f"{_HERE}.feeding"),
    Part(7, "A race", f"{_HERE}.race"),
)


def parts_named(text: str) -> tuple[Part, ...]:
    """Parse a selection such as ``1,3`` or ``2-4``; empty means all."""
    if not text:
        return PARTS
    wanted: set[int] = set()
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"parts must be numbers such as 1,3 or 2-4 (got {text!r})")
        wanted |= set(range(int(first), int(last if dash else first) + 1))
    unknown = wanted - {part.number for part in PARTS}
    if unknown:
        raise ValueError(f"part must be between 1 and {len(PARTS)} (got {min(unknown)})")
    return tuple(part for part in PARTS if part.number in wanted)
