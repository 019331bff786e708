"""How a number is written for people. Numbers come in base units; what is written has the unit that people use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairlap.machine.root import size_text

_LARGEST_POWER = 4  # TiB


@dataclass(frozen=True)
class Unit:
    text: Callable[[float], str]
    least_top: float
    """A bar chart's top is never lower, so that what hardly happens does not look like a mountain."""

    in_unit_of: Callable[[float, float], str] | None = None
    """The number of the first in the unit of the second, where units change with size."""

    def range_text(self, low: float, high: float) -> str:
        """``45–320 W``, ``0.6–1.1 GiB``."""
        first, last = self.text(low), self.text(high)
        if first == last:
            return last
        number = self.in_unit_of(low, high) if self.in_unit_of else first.rpartition(" ")[0]
        return f"{number}–{last}"


def part_text(part_bytes: float, whole_bytes: float) -> str:
    """``0.6 of 23.5 GiB``."""
    return f"{_bytes_in_unit_of(part_bytes, whole_bytes)} of {size_text(whole_bytes)}"


def _bytes_in_unit_of(part_bytes: float, whole_bytes: float) -> str:
    power = min(max(int(whole_bytes).bit_length() - 1, 0) // 10, _LARGEST_POWER)
    return f"{part_bytes / 1024**power:.1f}"


WATTS = Unit(lambda watts: f"{_short(watts)} W", 1.0)
MEGAHERTZ = Unit(lambda hertz: f"{hertz / 1e6:,.0f} MHz", 1e6)
BYTES = Unit(size_text, 1.0, _bytes_in_unit_of)
CELSIUS = Unit(lambda celsius: f"{celsius:.0f} °C", 1.0)
SHARE = Unit(lambda share: f"{_short(100 * share)} %", 0.05)
CORES = Unit(lambda cores: f"{cores:.2f} cores", 0.1)
PER_SECOND = Unit(lambda rate: f"{_short(rate)} /s", 1.0)


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}"
