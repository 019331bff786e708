"""gymnasium's vector environments: ``gymnasium`` steps them in turn, ``gymnasium:async`` in a process for each.

``gymnasium:vectorized`` is the one of a whole batch that gymnasium has of CartPole alone.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from fairlap.frameworks.adapter_parts.answers import named_outputs
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.models.workload import Workload

MODES = {"": "sync", "sync": "sync", "async": "async", "vectorized": "vector_entry_point"}
"""As ``gymnasium.make_vec`` calls them, by variant."""


class Gymnasium(Framework):
    name = "gymnasium"
    packages = ("gymnasium==1.3.0",)
    module = "gymnasium"
    variants: ClassVar[tuple[str, ...]] = tuple(MODES)
    modes = ("simulate",)
    precisions = ("fp64",)
    no_precision: ClassVar = {"fp32": "the state of its environments is in Python's floats, of 64 bits"}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import gymnasium
        self._version = str(gymnasium.__version__)
        with phase("build"):
            model = work.implementation(self.name)
            if why := model.why_not(MODES[wanted.variant]):
                raise Unsupported(why)
            environments = model.made(MODES[wanted.variant], work.batch)
        return Contestant(
            bind=partial(model.bind, environments),
            done=None,
            outputs=partial(named_outputs, work.spec),
            weights=dict,
            in_force={
                "threads_asked": str(wanted.threads),
                "precision": NO_WEIGHTS,
                "environments": type(environments).__name__,
                "autoreset": str(environments.metadata["autoreset_mode"].value),
            },
        )
