"""What sensors said of the energy of one region: joules in an interval, or why they cannot be told. Never 0 then."""

from __future__ import annotations

import msgspec


class EnergyRead(msgspec.Struct, frozen=True):
    """Of one sensor over one region. Unresolved, it may still have an interval."""

    sensor: str  # such as "nvml:0", "powercap intel-rapl:0 package-0"
    joules: float | None
    low_j: float | None
    high_j: float | None
    why: str = ""  # there are no joules


class EnergyOfBlock(msgspec.Struct, frozen=True):
    """Of one process's timed calls, from the first to the last."""

    seconds: float
    calls: int
    read: list[EnergyRead]


class IdlePower(msgspec.Struct, frozen=True):
    """Of the machine before the first block of a race, by one sensor."""

    sensor: str
    watts: float | None
    low_w: float | None
    high_w: float | None
    why: str = ""
