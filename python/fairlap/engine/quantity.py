"""One measured quantity: its samples, how they were taken, and what programs read of it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from fairlap import quantity_text
from fairlap.engine import _native

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

SHOWN_QUANTILES = (0.5, 0.9, 0.99)


class MeasuredQuantity(msgspec.Struct, frozen=True, kw_only=True):
    """Figures are None where no sample is valid, and the interval where there are fewer than six."""

    method: str
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    interval_ns: tuple[float, float] | None  # of the median, within this process
    interval_coverage: float | None
    resolution_ns: float
    floor: dict[str, float]
    samples_ns: list[float | None] | msgspec.UnsetType = msgspec.UNSET  # with --raw


@dataclass(frozen=True)
class Quantity:
    """One measured quantity: its samples in nanoseconds per call, and how they were taken.

    ``samples`` is any one-dimensional float64 buffer; an invalid sample is NaN. No digit below
    ``resolution_ns`` is ever printed.
    """

    name: str
    method: str
    samples: Buffer = field(repr=False)
    resolution_ns: float
    floor: Mapping[str, float]
    gate: str = ""  # what held the stream during a span; "none" leaves launch gaps in it
    sm_mhz: float | None = None  # of a GPU: the median of its clock at the samples, where that was read

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The samples as a NumPy array over the same memory."""
        import numpy as np

        return np.asarray(self.samples)

    @cached_property
    def interval(self) -> _native.Interval:
        """The median and its interval within this process; coverage 0 when there are too few samples."""
        return _native.interval_of_median(self.samples)

    @property
    def median_ns(self) -> float:
        return self.quantiles((0.5,))[0]

    def quantiles(self, shares: tuple[float, ...]) -> list[float]:
        return _native.quantiles(self.samples, list(shares))

    def __len__(self) -> int:
        return len(memoryview(self.samples))

    def __getstate__(self) -> dict[str, Any]:
        """For pickling: the samples are copied out of the engine's memory."""
        state = {key: value for key, value in self.__dict__.items() if key != "interval"}
        state["samples"] = array("d", memoryview(self.samples).tobytes())
        return state

    def printed(self, *, raw: bool) -> MeasuredQuantity:
        """Convert it for a document; with ``raw`` also every sample."""
        p50_ns, p90_ns, p99_ns = (_number(ns) for ns in self.quantiles(SHOWN_QUANTILES))
        has_interval = self.interval.coverage > 0
        samples = memoryview(self.samples).cast("B").cast("d").tolist() if raw else []
        return MeasuredQuantity(
            method=self.method,
            p50_ns=p50_ns,
            p90_ns=p90_ns,
            p99_ns=p99_ns,
            interval_ns=(self.interval.low, self.interval.high) if has_interval else None,
            interval_coverage=self.interval.coverage if has_interval else None,
            resolution_ns=self.resolution_ns,
            floor=dict(self.floor),
            samples_ns=[_number(ns) for ns in samples] if raw else msgspec.UNSET,
        )

    def __str__(self) -> str:
        median_ns = self.median_ns
        if math.isnan(median_ns):
            return f"{self.name}: no valid sample ({self.method})"
        if self.interval.coverage == 0:
            return f"{quantity_text.duration(median_ns, self.resolution_ns)} (fewer than 6 samples: no interval)"
        return quantity_text.duration_interval(median_ns, self.interval.low, self.interval.high, self.resolution_ns)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
