"""One contestant at several scales of one work: what more of them brought, and what a law would expect beyond them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairlap import verdict
from fairlap.request.fields.scale import Scale
from fairlap.request.work import Conditions, Work
from fairlap.results.column_definitions.estimate import Estimate

FARTHEST = 8.0
"""Times the largest scale that was measured: a projection goes no further."""


@dataclass(frozen=True)
class ScalePoint:
    """One contestant at one scale. What is absent at the smallest one needs no reason: it is the reference."""

    work: Work
    scale: Scale
    speed_up: Estimate | None = None
    speed_up_verdict: str = ""
    efficiency: Estimate | None = None
    efficiency_verdict: str = ""
    absent: str = ""  # why there is no speed-up
    no_efficiency: str = ""  # why there is none, where there is a speed-up


@dataclass(frozen=True)
class Projection:
    """What the laws say of scales that were not raced, or why they say nothing. Nothing is ranked by it."""

    axis: str  # what is projected: "threads" or "ranks"
    law: verdict.UniversalScalability | None = None
    why: str = ""
    exchange: verdict.LatencyBandwidth | None = None


@dataclass(frozen=True)
class ScalingSeries:
    """One contestant on one work under one kind of conditions, at all its scales, the smallest first."""

    contestant: str
    work: Work  # without a scale
    weak: bool
    conditions: Conditions
    points: tuple[ScalePoint, ...]
    passes: int  # in which every scale that is compared finished
    _log_times: Mapping[Scale, Sequence[float]] = field(default_factory=dict)  # of an item, by pass
    _exchanges_ns: Mapping[Scale, Sequence[float]] = field(default_factory=dict)  # by pass
    _exchanged_bytes: Mapping[Scale, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.work.label}{' for each rank, weak scaling' if self.weak else ''}"

    @cached_property
    def projection(self) -> Projection:
        """Along the threads, or along the ranks where their threads are the same."""
        scales = list(self._log_times)
        axis = "ranks" if len({scale.ranks for scale in scales}) > 1 else "threads"
        if axis == "ranks" and len({scale.threads for scale in scales}) > 1:
            why = "both threads and ranks differ between these scales, and a law has one size"
            return Projection(axis, why=why)
        if not scales:
            why = "fewer than two scales can be compared"
            return Projection(axis, why=why)
        law, why = None, ""
        try:
            logs = np.column_stack([np.asarray(self._log_times[scale]) for scale in scales])
            law = verdict.universal_scalability(logs, [float(getattr(scale, axis)) for scale in scales])
        except verdict.TooFewScales as few:
            why = str(few)
        return Projection(axis, law, why, self._exchange())

    def _exchange(self) -> verdict.LatencyBandwidth | None:
        """None where no exchange between ranks was measured, or at too few scales."""
        scales = [scale for scale in self._exchanges_ns if scale in self._exchanged_bytes]
        if not scales:
            return None
        times = np.column_stack([np.asarray(self._exchanges_ns[scale]) for scale in scales])
        sizes = [self._exchanged_bytes[scale] for scale in scales]
        try:
            return verdict.latency_bandwidth(times, [scale.ranks for scale in scales], sizes)
        except verdict.TooFewScales:
            return None

    def projected(self) -> Iterator[tuple[float, verdict.Bounded]]:
        """Project the law's speed-up by size, from the smallest scale to the farthest."""
        projection = self.projection
        if projection.law is None:
            return
        sizes = [getattr(point.scale, projection.axis) for point in self.points]
        for size in np.geomspace(min(sizes), FARTHEST * max(sizes), 25):
            yield float(size), projection.law.speed_up(float(size))
