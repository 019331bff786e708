"""What is watched: where a metric is read, its name, and how people see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from fairlap import quantity_text
from fairlap.quantity_text import number

PREFIX = "fairlap_"
_BASE_UNITS = {"ns": 1e-9, "percent": 1e-2, "mhz": 1e6}


@dataclass(frozen=True)
class Unit:
    """How a number in base units is written for people."""

    text: Callable[[float], str]
    least_top: float
    """The top of a bar chart is never lower, so that small values look small."""

    def range_text(self, low: float, high: float) -> str:
        """``45–320 W``, ``610 MiB–1.1 GiB``."""
        first, last = self.text(low), self.text(high)
        if first == last:
            return last
        value, _, unit = first.rpartition(" ")
        return f"{value if last.endswith(f' {unit}') else first}–{last}"


WATTS = Unit(lambda watts: f"{number(watts)} W", 1.0)
MEGAHERTZ = Unit(lambda hertz: f"{number(hertz / 1e6, 4)} MHz", 1e6)
BYTES = Unit(quantity_text.size, 1.0)
CELSIUS = Unit(lambda celsius: f"{celsius:.0f} °C", 1.0)
SHARE = Unit(quantity_text.share, 0.05)
CORES = Unit(lambda cores: f"{cores:.2f} cores", 0.1)
PER_SECOND = Unit(lambda rate: f"{number(rate)} /s", 1.0)


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
    labels: dict[str, str] = dataclasses.field(default_factory=dict)  # in addition to device and source
    bit: int = 0  # of a field made of bits; the value is 1 while it is set
    whole: str = ""  # the metric that this one is shown as a part of
    reason: str = ""  # metrics of one row give different reasons of the same thing
    essential: bool = False  # stays when the terminal is too low for everything

    @property
    def scale(self) -> float:
        """From the field's unit, which its name ends with, to the base unit."""
        return _BASE_UNITS.get(self.field.rpartition("_")[2], 1.0)

    @property
    def full_name(self) -> str:
        return f"{PREFIX}{self.name}{'_total' if self.counter else ''}"
