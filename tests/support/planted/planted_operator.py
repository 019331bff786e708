"""PyTorch in two releases, of which the second runs one operator twice; FAIRLAP_PLANTED names its module and makes it
the second one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.frameworks.torch import Torch
from fairlap.models.workload import Workload


class PlantedTorch(Torch):
    name = "planted"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        self._planted = os.environ.get("FAIRLAP_PLANTED", "")
        contestant = super().prepare(work, wanted, phase)
        self._version = "2.0" if self._planted else "1.0"
        return contestant

    def _bind(self, work: Workload, device: str, model: Any, forward: Any, inputs: Any) -> Callable[[], Any]:
        if self._planted:
            layer, self._planted = model.get_submodule(self._planted), ""
            layer.forward = _twice(layer.forward)
        return super()._bind(work, device, model, forward, inputs)


def _twice(forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def twice(inputs: Any) -> Any:
        forward(inputs)
        return forward(inputs)

    return twice
