"""NumPy: environments step by step, all of a batch at once."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from fairlap.frameworks.adapter_parts.answers import named_outputs
from fairlap.frameworks.contract import NO_WEIGHTS, Contestant, Framework, Phase, Settings, refuse_what_is_unknown
from fairlap.models.workload import Workload


class NumPy(Framework):
    name = "numpy"
    packages: ClassVar[tuple[str, ...]] = ("numpy==2.4.6",)
    module = "numpy"
    implementation = "numpy"
    modes = ("simulate",)
    precisions = ("fp64", "fp32")

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {"OPENBLAS_NUM_THREADS": str(settings.threads), "OMP_NUM_THREADS": str(settings.threads)}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import numpy as np
        self._version = str(np.__version__)
        with phase("build"):
            model = work.implementation(self.implementation)
        return Contestant(
            bind=model.bind,
            done=None,
            outputs=partial(named_outputs, work.spec),
            weights=dict,
            in_force={
                "threads_asked": str(wanted.threads),
                "precision": NO_WEIGHTS,
                "state": model.state_type,
            },
        )
