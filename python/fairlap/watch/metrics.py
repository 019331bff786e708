"""One thing that is watched: where it is read, what it is called, how a person sees it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from fairlap.watch.units import Unit

PREFIX = "fairlap_"


@dataclass(frozen=True)
class Metric:
    source: str
    field: str  # of the source
    name: str  # in base units, without prefix and without the _total of a counter
    help: str
    unit: Unit  # as people see it; of a counter, what it gains in a second
    group: str
    row: str = ""  # of the terminal; empty: not shown there
    counter: bool = False
    latest: bool = False  # of a peak or a size: what was read last tells the interval, and no mean does
    scale: float = 1.0  # from the field's unit to the base unit
    labels: dict[str, str] = dataclasses.field(default_factory=dict)  # beside device and source
    bit: int = 0  # of a field made of bits; the value is 1 while it is set
    whole: str = ""  # the metric that it is shown as a part of
    reason: str = ""  # metrics of one row tell different reasons of the same thing
    essential: bool = False  # stays when the terminal is too low for everything

    @property
    def full_name(self) -> str:
        return f"{PREFIX}{self.name}{'_total' if self.counter else ''}"
