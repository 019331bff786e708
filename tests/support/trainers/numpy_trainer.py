"""A framework that trains with NumPy, and in its second epoch diverges or dies where its variant says so."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from hostile_training import HostileTraining, Trainer

AT_STEP = 30  # of epochs of 22


class NumpyTrainer(HostileTraining):
    name = "numpy-trainer"
    variants = ("", "diverges", "killed")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        contestant = super().prepare(work, replace(wanted, variant=""), phase)
        trainer: Trainer = contestant.bind.__self__  # type: ignore[attr-defined]

        def bind(arrays: Arrays) -> Callable[[], Any]:
            step = trainer.bind(arrays)

            def taken() -> Any:
                if trainer.state.step == AT_STEP and wanted.variant == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                if trainer.state.step == AT_STEP and wanted.variant == "diverges":
                    trainer.state.weights = {name: array * np.nan for name, array in trainer.state.weights.items()}
                return step()

            return taken

        return replace(contestant, bind=bind)
