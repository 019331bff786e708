"""What is watched: where a metric is read, its name, and how people see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from fairlap.machine.root import size_text

PREFIX = "fairlap_"
_LARGEST_POWER = 4  # TiB


@dataclass(frozen=True)
class Unit:
    """How a number in base units is written for people."""

    text: Callable[[float], str]
    least_top: float
    """The top of a bar chart is never lower, so that small values look small."""

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


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}"


WATTS = Unit(lambda watts: f"{_short(watts)} W", 1.0)
MEGAHERTZ = Unit(lambda hertz: f"{hertz / 1e6:,.0f} MHz", 1e6)
BYTES = Unit(size_text, 1.0, _bytes_in_unit_of)
CELSIUS = Unit(lambda celsius: f"{celsius:.0f} °C", 1.0)
SHARE = Unit(lambda share: f"{_short(100 * share)} %", 0.05)
CORES = Unit(lambda cores: f"{cores:.2f} cores", 0.1)
PER_SECOND = Unit(lambda rate: f"{_short(rate)} /s", 1.0)


@dataclass(frozen=True)
class Metric:
    source: str
    field: str  # of the source
    name: str  # in base units, without prefix and without the _total of a counter
    help: str
    unit: Unit  # as people see it; for a counter, of its increase per second
    group: str
    row: str = ""  # in the terminal; empty: not shown there
    counter: bool = False
    latest: bool = False  # of a peak or a size: the last reading of an interval counts, not the mean
    scale: float = 1.0  # from the field's unit to the base unit
    labels: dict[str, str] = dataclasses.field(default_factory=dict)  # in addition to device and source
    bit: int = 0  # of a field made of bits; the value is 1 while it is set
    whole: str = ""  # the metric that this one is shown as a part of
    reason: str = ""  # metrics of one row give different reasons of the same thing
    essential: bool = False  # stays when the terminal is too low for everything

    @property
    def full_name(self) -> str:
        return f"{PREFIX}{self.name}{'_total' if self.counter else ''}"
