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

    def range_text(self, low: float, high: float) -> str:
        """``45–320 W``; the low end's unit is left out where it is the same."""
        first, last = self.text(low), self.text(high)
        if first == last:
            return last
        number, _, unit = first.rpartition(" ")
        return f"{number if unit == last.rpartition(' ')[2] else first}–{last}"


WATTS = Unit(lambda watts: f"{_short(watts)} W", 1.0)
MEGAHERTZ = Unit(lambda hertz: f"{hertz / 1e6:,.0f} MHz", 1e6)
BYTES = Unit(size_text, 1.0)
CELSIUS = Unit(lambda celsius: f"{celsius:.0f} °C", 1.0)
SHARE = Unit(lambda share: f"{_short(100 * share)} %", 0.05)
CORES = Unit(lambda cores: f"{cores:.2f} cores", 0.1)
PER_SECOND = Unit(lambda rate: f"{_short(rate)} /s", 1.0)


def part_text(part_bytes: float, whole_bytes: float) -> str:
    """``0.6 of 23.5 GiB``: the part in the unit of the whole, so that it stays short."""
    power = min(max(int(whole_bytes).bit_length() - 1, 0) // 10, _LARGEST_POWER)
    return f"{part_bytes / 1024**power:.1f} of {size_text(whole_bytes)}"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}"
