"""The messages of calls in turn: on inputs of several sizes, or at several tolerances.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from fairlap.scenarios.asking import MOST_RAW_BYTES, Ask, Reply
from fairlap.scenarios.calls.latency_messages import BYTES_PER_SAMPLE, Reading

SETS = ("inputs", "changed")
"""The inputs that calls of a size have in turn, and what precedes their outputs in a file: ``inputs/logits``."""


class SizeSeen(Reply, frozen=True, tag="size_seen"):
    """The first call at a size, and the one after it."""

    first_s: float
    next_s: float
    compiled: int | None = None  # graphs that the first call compiled; None where nothing counts them
    graphs: int | None = None  # and all so far
    reading: Reading = Reading()


class SeeSize(Ask[SizeSeen], frozen=True, tag="see_size"):
    """Call the contestant at a size for the first time, and then on the other inputs of that size."""

    served_by: ClassVar[str] = "fairlap.scenarios.rotated.calls_of_sizes:see"

    size: int  # its place in the mix
    label: str  # for people
    inputs: tuple[str, ...]  # a safetensors file for each of SETS
    path: str  # of the outputs

    @property
    def text(self) -> str:
        return f"first call at {self.label}"


class DrawnAtSize(msgspec.Struct, frozen=True):
    """A timed call that is not among the samples, on inputs that no call had before."""

    at: float  # the share of the calls after which it is made
    size: int
    inputs: str  # a safetensors file
    path: str  # of its outputs


class MixMeasured(Reply, frozen=True, tag="mix_measured"):
    """The time of each call follows, in nanoseconds and in their order."""

    elapsed_s: float
    bytes: int
    drawn_ns: float | None = None
    reading: Reading = Reading()  # of the drawn call

    def require_consistent(self) -> None:
        """Raise msgspec.ValidationError for a number of bytes that holds no times."""
        if self.bytes % BYTES_PER_SAMPLE or not 0 <= self.bytes <= MOST_RAW_BYTES:
            raise msgspec.ValidationError(f"{self.bytes} bytes of times")


class MeasureMix(Ask[MixMeasured], frozen=True, tag="measure_mix"):
    """Time a call at each of these sizes, one after the other."""

    served_by: ClassVar[str] = "fairlap.scenarios.rotated.calls_of_sizes:measure"

    sizes: tuple[int, ...]
    drawn: DrawnAtSize | None = None

    def most_raw_bytes(self, after_s: float) -> int:
        return BYTES_PER_SAMPLE * len(self.sizes)
