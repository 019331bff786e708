"""The table as data: a row for each contestant and work."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays
from fairlap.printed_document import PrintedDocument

# The answers of a contestant compared bit by bit: from call to call, process, threads and batch.
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


class Repeated(msgspec.Struct, frozen=True):
    """Of two answers to the same inputs. ``why`` says why they were not compared."""

    equal: bool | None = None
    differing: int = 0  # elements whose bits differ
    elements: int = 0
    relative: float | None = None  # the norm of the difference over that of the answer; None where it is not finite
    why: str = ""


def compared(first: Arrays, second: Arrays) -> Repeated:
    if first.keys() != second.keys() or any(first[name].shape != second[name].shape for name in first):
        return Repeated(why="the answers have other shapes")
    pairs = [(np.ascontiguousarray(first[name]), np.ascontiguousarray(second[name])) for name in first]
    differing = sum(int(np.count_nonzero(_bits(one) != _bits(other))) for one, other in pairs)
    elements = sum(one.size for one, _ in pairs)
    if not differing:
        return Repeated(True, 0, elements, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        ones, others = (
            np.concatenate([pair[side].reshape(-1) for pair in pairs]).astype(np.float64) for side in (0, 1)
        )
        norm = float(np.linalg.norm(ones))
        relative = float(np.linalg.norm(ones - others)) / norm if norm else float("nan")
    return Repeated(False, differing, elements, relative if np.isfinite(relative) else None)


def _bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.view(_BITS[array.dtype.itemsize]) if array.dtype.itemsize in _BITS else array


class StabilityRow(msgspec.Struct, frozen=True, kw_only=True):
    """Of one process with one thread, but for what is compared with others.

    Without an answer there is only the reason, and its code.
    """

    contestant: str
    version: str = ""
    work: str  # its label
    model: str
    precision: str
    batch: int
    relative_error: float | None = None  # against the reference; None also where the answer is not finite
    digits_kept: float | None = None
    digits_possible: float | None = None  # of operations on which digits are lost
    time_ns: float | None = None  # the median call
    again: Repeated = Repeated()  # in the same process, after a call on other inputs
    process: Repeated = Repeated()  # in another process
    threads: Repeated = Repeated()  # with two threads
    batched: Repeated = Repeated()  # the first item alone, and in the batch
    absent: str = ""
    code: str = ""

    @property
    def checks(self) -> tuple[Repeated, ...]:
        return self.again, self.process, self.threads, self.batched


class StabilityTable(PrintedDocument, frozen=True, tag="fairlap.stability/1"):
    rows: tuple[StabilityRow, ...]
    seed: int  # draws weights and inputs
    threads: int  # of the second count of threads; 1 where there was no second one
    device: str = "cpu"
