"""A framework whose variants pretend to work, one way each. ``test_hostile.py`` asserts how each is found.

The honest one runs the model's reference in float32, on one thread.
"""

from __future__ import annotations

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.workload import Workload
from hostile_tricks.honest import Honest
from hostile_tricks.kept_answers import (
    EveryFiftieth,
    KeptByContent,
    KeptByFirstElements,
    KeptPerBinding,
    KeptPerContestant,
    Previous,
)
from hostile_tricks.later_work import Closure, Future, HiddenFuture, LateBuffer, LazyObject
from hostile_tricks.less_work import Bfloat16, EarlyExit, HalfBatch, ReplicatePadding, SkippedLayer, ZeroWeights
from hostile_tricks.work_elsewhere import Busy, LeftBurning, LeftSleeping, MoreThreads, OtherProcess, Sleeper
from numpy_framework import NumpyFramework, copied, in_float32, in_force


class Hostile(NumpyFramework):
    name = "hostile"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        trick = TRICKS[wanted.variant]()
        with phase("build"):
            weights = copied(work.weights)
        forward = work.implementation_of_reference().forward
        used = trick.weights(weights)
        return Contestant(
            bind=lambda inputs: trick.bind(lambda arrays: forward(used, arrays), inputs),
            done=None,
            outputs=lambda result: in_float32(trick.outputs(result)),
            weights=lambda: weights,
            in_force=in_force(work, wanted),
        )


TRICKS: dict[str, type[Honest]] = {
    "": Honest,
    "closure": Closure,
    "lazy-object": LazyObject,
    "future": Future,
    "hidden-future": HiddenFuture,
    "late-buffer": LateBuffer,
    "kept-per-binding": KeptPerBinding,
    "every-fiftieth": EveryFiftieth,
    "kept-per-contestant": KeptPerContestant,
    "kept-by-content": KeptByContent,
    "kept-by-first-elements": KeptByFirstElements,
    "previous": Previous,
    "other-process": OtherProcess,
    "more-threads": MoreThreads,
    "busy": Busy,
    "half-batch": HalfBatch,
    "early-exit": EarlyExit,
    "zero-weights": ZeroWeights,
    "skipped-layer": SkippedLayer,
    "bfloat16": Bfloat16,
    "replicate-padding": ReplicatePadding,
    "sleeper": Sleeper,
    "left-sleeping": LeftSleeping,
    "left-burning": LeftBurning,
}
Hostile.variants = tuple(TRICKS)
