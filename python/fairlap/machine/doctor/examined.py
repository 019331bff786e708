"""All that the judges look at, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlap.machine.doctor.watching import Watched
from fairlap.machine.nvml import Gpus
from fairlap.machine.root import Root


@dataclass(frozen=True)
class Examined:
    root: Root
    facts: Mapping[str, str]
    watched: Watched
    gpus: Gpus
    clock: Mapping[str, Any] = field(default_factory=dict)  # the floor of the engine's clock
    clock_absent: str = ""  # why there is none

    @property
    def is_virtual(self) -> bool:
        return self.facts.get("hypervisor") == "yes"
