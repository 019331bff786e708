"""The parts of the proof, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    number: int
    title: str
    module: str
    seconds: float = 540.0  # all that one run of it may take: less than ten minutes with what comes around it


_HERE = "tests.gpu.proof"

PARTS = (
    Part(1, "The tests of tests/gpu", f"{_HERE}.part_1_tests"),
    Part(2, "Truth: kernels of known length", f"{_HERE}.part_2_truth"),
    Part(3, "Beside other timers", f"{_HERE}.part_3_beside"),
    Part(4, "Which method serves which framework", f"{_HERE}.part_4_frameworks"),
    Part(5, "Power and energy", f"{_HERE}.part_5_telemetry"),
    Part(6, "Feeding", f"{_HERE}.part_6_feeding"),
    Part(7, "A race", f"{_HERE}.part_7_race"),
)


def parts_named(text: str) -> tuple[Part, ...]:
    """``1,3`` or ``2-4``, or both; in their own order. Empty is all."""
    if not text:
        return PARTS
    wanted: set[int] = set()
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"parts are numbers such as 1,3 or 2-4, not {text!r}")
        wanted |= set(range(int(first), int(last if dash else first) + 1))
    unknown = wanted - {part.number for part in PARTS}
    if unknown:
        raise ValueError(f"there is no part {min(unknown)}; there are 1 to {len(PARTS)}")
    return tuple(part for part in PARTS if part.number in wanted)
