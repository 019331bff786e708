"""The proof in calls of at most nine minutes, for a machine that is lent for a quarter of an hour.

The first proves most, and each is of use alone. A call goes on from what earlier ones left, in the file of the device.
"""

from __future__ import annotations

from dataclasses import dataclass

from .parts import PARTS, Part
from .running import GRACE_S

LONGEST_S = 540.0
BUILD_S = 75.0  # compiling on 16 cores; 60 s on 8
END_S = 5.0  # the page, the picture and the facts of the machine

OPTIONAL = ("compute-sanitizer", "cuda-bench", "cupy", "onnxruntime", "paddle", "tensorflow", "tensorrt", "triton")
"""What a lent machine may lack; a step that needs it is then left out with a note, and does not fail the call."""


@dataclass(frozen=True)
class Piece:
    """Steps of one part, as patterns, and the time that they have."""

    name: str
    seconds: float
    only: tuple[str, ...] = ("*",)

    @property
    def part(self) -> Part:
        return next(part for part in PARTS if part.name == self.name)


@dataclass(frozen=True)
class Call:
    number: int
    title: str
    pieces: tuple[Piece, ...]

    @property
    def most_s(self) -> float:
        """Return the longest that it takes, if one part overruns and is ended."""
        return BUILD_S + sum(piece.seconds for piece in self.pieces) + GRACE_S + END_S


CALLS = (
    Call(
        1,
        "The engine against truth, timers, streams of PyTorch and JAX, the floor",
        (
            Piece("truth", 75),
            Piece("frameworks", 70, ("probe *", "torch", "jax")),
            Piece(
                "tests", 125, ("test_truth.py", "test_gate.py", "test_streams.py", "test_hidden_*", "test_failures.py")
            ),
            Piece("timers", 165, ("*, process 1",)),
        ),
    ),
    Call(
        2,
        "ONNX Runtime, TensorRT and kernels with CUPTI, energy and sampler",
        (
            Piece("frameworks", 165, ("records *", "onnxruntime*", "cupy", "tensorflow", "paddle")),
            Piece("energy", 180),
            Piece(
                "tests",
                80,
                ("test_cache_and_graphs.py", "test_sample_clocks.py", "test_roofs_on_device.py", "test_examples.py"),
            ),
        ),
    ),
    Call(
        3,
        "Races quiet and loaded, PyTorch against itself, training, feeding",
        (
            Piece("race", 340, ("resnet50-b1-fp32", "A/A*", "training")),
            Piece("feeding", 95, ("the machine's own rate", "the feeder", "copies *")),
        ),
    ),
    Call(
        4,
        "Roofs, load, precision, memory, a rank over NCCL",
        (
            Piece("roofs", 65),
            Piece("use", 270),
            Piece(
                "tests",
                105,
                ("test_precisions_on_device.py", "test_feeding_on_device.py", "test_untrusted_callables.py"),
            ),
        ),
    ),
)


def call_numbered(text: str) -> Call:
    found = next((call for call in CALLS if str(call.number) == text.strip()), None)
    if found is None:
        raise ValueError(f"call must be between 1 and {len(CALLS)} (got {text!r})")
    return found
