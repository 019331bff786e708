"""Which blocks of callables on a GPU count: those at its full clock, in which all callables were held alike.

A span of a stream that was held while the host launched contains no launch gaps, and one that was not held does. Where
a callable waits for the GPU, it cannot be held. Neither rule looks at what was measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Measurement, Notice
from fairlap.meters.sample_clocks import SampleClocks, all_are_throttled
from fairlap.meters.stolen_time import E_GPU_THROTTLED

THROTTLED, UNLIKE_GATES = "W_THROTTLED_BLOCKS", "W_UNLIKE_GATES"
_MOST_LEFT_OUT = 20  # blocks more than those that count
_RECOVERY_S = 0.1  # of a GPU that was slowed down, before the next block


class DeviceBlocks:
    """Of one comparison. Blocks on a processor all count."""

    def __init__(self, clocks: SampleClocks | None) -> None:
        self._clocks = clocks
        self._kept = self._throttled = self._unlike = 0
        self._who = self._not_held = ""

    def begin(self, first: Measurement) -> None:
        """Read the clock of the device from the first measurement on."""
        if self._clocks is not None:
            self._clocks.start_for(first)

    def with_clocks(self, measured: Measurement) -> Measurement:
        return measured if self._clocks is None else self._clocks.applied(measured)

    def mhz(self, measured: Measurement) -> float | None:
        return self.with_clocks(measured).headline.sm_mhz

    def can_hold(self, firsts: Mapping[str, Measurement]) -> bool:
        """Whether the stream can be held for all callables alike, by the first measurement of each."""
        waiting = [name for name, first in firsts.items() if _waits_for_the_device(first)]
        if waiting and len(waiting) < len(firsts):
            self._not_held = f"the stream is held for none of them, because {', '.join(waiting)} waits for the GPU"
            return False
        return True

    def counts(self, block: Mapping[str, Measurement]) -> bool:
        """Whether the block of these callables, by name, counts."""
        gates = {name: each.headline.gate for name, each in block.items()}
        if any(all_are_throttled(each) for each in block.values()):
            self._throttled += 1
            time.sleep(_RECOVERY_S)
            return False
        waiting = [name for name, each in block.items() if each.headline.gate and math.isnan(each.median_ns)]
        if waiting or len(set(gates.values())) > 1:
            self._unlike += 1
            self._who = f"no sample of {waiting[0]} could be held" if waiting else _held_unlike(gates)
            return False
        self._kept += 1
        return True

    @property
    def why_end(self) -> str:
        """Empty where a further block may count."""
        if self._throttled + self._unlike <= _MOST_LEFT_OUT + self._kept:
            return ""
        return f"stopped: {'; '.join(notice.text for notice in self.notices)}"

    @property
    def notices(self) -> tuple[Notice, ...]:
        alike = (Notice(UNLIKE_GATES, f"launch gaps are in all spans: {self._not_held}"),) if self._not_held else ()
        return (*left_out(self._throttled, self._unlike, self._who), *alike)

    @property
    def why_none(self) -> tuple[str, str]:
        """Explain with a code why too few blocks are left; empty where none was left out."""
        codes = (E_GPU_THROTTLED,) * bool(self._throttled) + (verdict.UnlikeQuantities.code,) * bool(self._unlike)
        if not codes:
            return "", ""
        return f"{self.notices[0].text} [{codes[0]}]", codes[0]


def _waits_for_the_device(first: Measurement) -> bool:
    """Whether it lost the gate before its samples, or in most of them."""
    timed_out = getattr(first, "invalid", {}).get("gate_timed_out", 0)
    return first.headline.gate == "none" or 0 < first.samples <= 2 * timed_out


def left_out(throttled: int, unlike: int, who: str) -> tuple[Notice, ...]:
    found = []
    if throttled:
        found.append(
            Notice(THROTTLED, f"{_blocks(throttled)} left out, because temperature or power slowed the GPU down")
        )
    if unlike:
        text = f"{_blocks(unlike)} left out, because launch gaps are in the spans of some only ({who})"
        found.append(Notice(UNLIKE_GATES, text))
    return tuple(found)


def _blocks(count: int) -> str:
    return f"{quantity_text.count(count, 'block')} {'was' if count == 1 else 'were'}"


def _held_unlike(gates: Mapping[str, str]) -> str:
    """Such as ``a behind stream_wait, b without a gate``."""
    behind: Sequence[str] = [f"{name} behind {gate}" for name, gate in gates.items() if gate != "none"]
    return ", ".join([*behind, *(f"{name} without a gate" for name, gate in gates.items() if gate == "none")])
