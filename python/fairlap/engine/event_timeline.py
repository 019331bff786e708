"""Where the events of a CUDA device lie on the sampler's clock."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.engine import _native
from fairlap.engine.clocks import clock_named
from fairlap.engine.cuda_libraries import native_errors_explained


@dataclass(frozen=True)
class EventTime:
    """A moment as ``Sampler.mark`` tells moments, and by how much it may be wrong."""

    time_ns: float
    uncertainty_ns: float


class EventTimeline:
    """Compares the clocks of a device and of a sampler, by events of its own on an idle stream.

    The device must be in use already: it borrows a framework's context, or the current one when ``device`` is left
    out. ``clock`` must be that of the sampler. Anchors taken now and then keep drift out of what lies between them.
    """

    def __init__(self, device: int | None = None, *, clock: str = "auto") -> None:
        with native_errors_explained():
            self._native = _native.EventTimeline(clock_named(clock), -1 if device is None else device)

    def anchor(self) -> None:
        with native_errors_explained():
            self._native.anchor()

    def anchor_if_older(self, seconds: float) -> bool:
        """Anchor anew when the last anchor is older than that; says whether it was."""
        with native_errors_explained():
            return self._native.anchor_if_older(seconds)

    def time_of(self, event: int) -> EventTime:
        """Of an event with timing, by its address (``torch.cuda.Event.cuda_event``), that is done."""
        with native_errors_explained():
            return EventTime(*self._native.time_of(event))

    @property
    def drift_ppm(self) -> tuple[float, float]:
        """By how many millionths the sampler's clock outruns the device's, and by how many that may be wrong."""
        return self._native.drift_ppm

    @property
    def anchors(self) -> int:
        return self._native.anchors
