"""A board's energy counter that is too expensive to read while a region lasts: read before it and after it.

On an H100 with driver 580, a reading took 2.4 to 3.3 ms and the counter stepped every 100 ms (docs/gpu-proof, part 5).
The sampler reads what is so expensive every few seconds only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlap.engine.sampling.joules import Energy
from fairlap.machine.hardware.gpu import NvmlAbsent, open_nvml, or_none

_LONGEST_WAIT_NS = 300_000_000  # for a step, of which there are ten in a second
_BETWEEN_READINGS_S = 0.001
_WIDEST_STEP_NS = 20_000_000  # one that a busy machine saw later has no time that is known well enough
_NO_STEP = f"no step of the counter was seen in {_LONGEST_WAIT_NS // 1_000_000} ms before or after the region"


@dataclass(frozen=True)
class _Step:
    """A rise of the counter, between the begin of the last reading that lacks it and the end of the first one."""

    after_ns: int
    seen_ns: int
    joules: float  # from here on

    @property
    def middle_ns(self) -> int:
        return (self.after_ns + self.seen_ns) // 2


class CounterAtEnds:
    """Of one board. ``now_ns`` is the clock of the regions."""

    def __init__(self, index: int, now_ns: Callable[[], int]) -> None:
        self._index, self._now_ns = index, now_ns
        self._before: list[_Step] = []
        self._after: list[_Step] = []
        self._why_not = _NO_STEP

    def before(self) -> None:
        """Return right after a step of the counter."""
        self._before, self._after = self._steps(1), []

    def after(self) -> None:
        """Wait for two steps; between them the board does what it does without the work."""
        self._after = self._steps(2)

    def energy(self, begin_ns: int, end_ns: int, whole_begin_ns: int, whole_end_ns: int) -> Energy:
        """Read the energy of a part of the region, during all of which the board works alike.

        The counter lags behind, always by as much, so that between two steps it grows by what the board takes between
        them. What the board takes from a step to the begin, and from the end to a step, is between nothing and the
        highest mean power; it is taken to be the mean power of the region, and that between the two steps after it.
        """
        if not self._before or len(self._after) < 2:
            return Energy(None, None, None, self._why_not, 0)
        first, (last, further) = self._before[0], self._after
        period_ns = further.middle_ns - last.middle_ns
        grown_j = last.joules - first.joules
        if whole_end_ns - whole_begin_ns < period_ns:
            why = "the region is shorter than a step of the counter"
            return Energy(None, 0.0, grown_j, why, 0)
        after_w = (further.joules - last.joules) / (period_ns * 1e-9)
        behind_s = max(0, last.middle_ns - whole_end_ns) * 1e-9
        mean_w = (grown_j - after_w * behind_s) / ((whole_end_ns - first.middle_ns) * 1e-9)
        outside_ns = (last.seen_ns - first.after_ns) - (end_ns - begin_ns)
        low_j = max(0.0, grown_j - max(mean_w, after_w) * outside_ns * 1e-9)
        joules = min(max(mean_w * (end_ns - begin_ns) * 1e-9, low_j), grown_j)
        return Energy(joules, low_j, grown_j, "", 0)

    def _steps(self, wanted: int) -> list[_Step]:
        try:
            with open_nvml() as nvml:
                handle = or_none(nvml.nvmlDeviceGetHandleByIndex, self._index)
                return [] if handle is None else self._steps_of(nvml, handle, wanted)
        except NvmlAbsent as reason:
            self._why_not = str(reason)
            return []

    def _steps_of(self, nvml: Any, handle: Any, wanted: int) -> list[_Step]:
        found: list[_Step] = []
        began_ns, millijoules = self._now_ns(), or_none(nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        until_ns = began_ns + wanted * _LONGEST_WAIT_NS
        while millijoules is not None and len(found) < wanted and began_ns < until_ns:
            time.sleep(_BETWEEN_READINGS_S)
            before, after_ns = millijoules, began_ns
            began_ns, millijoules = self._now_ns(), or_none(nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
            if millijoules is not None and millijoules > before:
                step = _Step(after_ns, self._now_ns(), millijoules / 1000)
                found += [step] if step.seen_ns - step.after_ns <= _WIDEST_STEP_NS else []
        return found
