"""In what state a GPU is at each call: its cache cold or warm, the device rested or loaded."""

from __future__ import annotations

from typing import Literal

import msgspec

CODE = "E_DEVICE_CONDITIONS"

CACHE, REGIME = "cache", "regime"
"""By which a process reports what was in force."""

Cache = Literal["warm", "cold"]
RegimeKind = Literal["", "burst", "sustained"]


class DeviceConditions(msgspec.Struct, frozen=True):
    """Those that were asked for. Work under other conditions is other work."""

    cache: Cache = "warm"
    regime: RegimeKind = ""

    @property
    def text(self) -> str:
        return ", ".join(filter(None, ("cold L2 cache" if self.cache == "cold" else "", self.regime)))
