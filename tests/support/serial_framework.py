"""A framework in plain NumPy whose processes take several works. Variants leave something behind, or fail at one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from numpy_framework import NumpyFramework, copied, in_float32, in_force

BAD_BATCH = 3
LEFT_S = 0.005
"""What every work that was there before adds to a call of the variant that leaves something behind."""

_WORKS: list[Workload] = []


class Serial(NumpyFramework):
    name = "serial"
    variants = ("", "leaves", "crash", "wrong", "stale")
    of_several_works: ClassVar = variants
    forgotten = 0

    @classmethod
    def forget(cls) -> None:
        cls.forgotten += 1

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        variant = wanted.variant
        if variant == "stale" and _WORKS:
            raise KeyError("left by another work")
        if variant == "crash" and work.batch == BAD_BATCH:
            os.kill(os.getpid(), signal.SIGSEGV)
        before = len(_WORKS)
        if work.spec.name != "empty":  # of which the overhead of a call is measured
            _WORKS.append(work)
        with phase("build"):
            weights = copied(work.weights)
        forward = work.implementation_of_reference().forward

        def bind(inputs: Arrays) -> Callable[[], Any]:
            def call() -> Any:
                if variant == "leaves":
                    time.sleep(before * LEFT_S)
                answer = forward(weights, inputs)
                wrong = variant == "wrong" and work.batch == BAD_BATCH
                return {name: value + np.nan if wrong else value for name, value in answer.items()}

            return call

        return Contestant(
            bind=bind,
            done=None,
            outputs=in_float32,
            weights=lambda: weights,
            in_force={**in_force(work, wanted), "pid": str(os.getpid()), "forgotten": str(self.forgotten)},
        )
