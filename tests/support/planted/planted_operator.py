"""PyTorch in two releases, of which the second runs one operator twice.

FAIRLAP_PLANTED names its module and makes it the second one. FAIRLAP_SEEN names a file that gets a line for every
answer: which modules of profilers the process had loaded, and whether PyTorch's was on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.frameworks.libraries.torch import Torch
from fairlap.models.workload import Workload


class PlantedTorch(Torch):
    name = "planted"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        self._planted = os.environ.get("FAIRLAP_PLANTED", "")
        contestant = super().prepare(work, wanted, phase)
        self._version = "2.0" if self._planted else "1.0"
        return replace(contestant, outputs=partial(_outputs, contestant.outputs))

    def _bind(
        self, work: Workload, device: str, in_mode: Any, model: Any, forward: Any, *inputs: Any
    ) -> Callable[[], Any]:
        if self._planted:
            layer, self._planted = model.get_submodule(self._planted), ""
            layer.forward = _twice(layer.forward)
        return super()._bind(work, device, in_mode, model, forward, *inputs)


def _outputs(outputs: Callable[[Any], Any], result: Any) -> Any:
    if file := os.environ.get("FAIRLAP_SEEN"):
        import torch

        loaded = [name for name in sys.modules if name.startswith("fairlap.") and "profile" in name.split(".")[-1]]
        loaded.remove("fairlap.scenarios.untimed.profile_messages")  # the protocol's; it runs nothing
        line = {"pid": os.getpid(), "loaded": loaded, "active": bool(torch.autograd._profiler_enabled())}
        with Path(file).open("a") as lines:
            lines.write(json.dumps(line) + "\n")
    return outputs(result)


def _twice(forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def twice(inputs: Any) -> Any:
        forward(inputs)
        return forward(inputs)

    return twice
