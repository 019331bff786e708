"""A framework whose ranks train with NumPy, each with a GPU of the fake driver to itself."""

from __future__ import annotations

import os
from typing import ClassVar

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.workload import Workload
from ranked_numpy import RankedNumpy
from visible_gpus import show


class RanksOnGpus(RankedNumpy):
    name = "ranks-on-gpus"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        if wanted.device != "cpu":
            show()  # the driver of this rank starts with its framework
        contestant = super().prepare(work, wanted, phase)
        found = {"device": wanted.device, "shown": os.environ.get("CUDA_VISIBLE_DEVICES", "")}
        contestant.in_force.update(found)  # type: ignore[attr-defined]
        return contestant
