"""Gradients against each other: the first contestant's that are right are what the others' are held to.

The slope along a few directions is exact but sees little of a large gradient. Two frameworks that agree element by
element to rounding cannot both be wrong in the same way by chance.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np

from fairlap.race.answers import BESIDE, GRADIENT, LARGEST_GRADIENT_DISAGREEMENT
from fairlap.race.laps import AnswerError
from fairlap.race.materials import Materials
from fairlap.race.plan import Work
from fairlap.workloads import safetensors


class Agreement:
    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._first: dict[Work, tuple[str, Path]] = {}

    def errors(self, materials: Materials, contestant: str, answer: Path) -> list[AnswerError]:
        """How far the gradients lie from those of the first, as the norm of the difference over the norm."""
        work = materials.work
        if work.mode != "grad":
            return []
        if work not in self._first:
            kept = self._scratch / f"first-{len(self._first)}.safetensors"
            shutil.copyfile(answer, kept)
            self._first[work] = (contestant, kept)
        whose, kept = self._first[work]
        if whose == contestant:
            return []
        first, own = safetensors.read(kept), safetensors.read(answer)
        names = [name for name in first if name.startswith(GRADIENT)]
        difference = math.sqrt(sum(float(np.sum(np.square(own[name] - first[name]))) for name in names))
        norm = math.sqrt(sum(float(np.sum(np.square(first[name]))) for name in names))
        relative = difference / max(norm, 1e-300)
        # A unit that rounding puts on the other side of a kink moves single gradients more than the slopes.
        allowed = LARGEST_GRADIENT_DISAGREEMENT[work.precision] + 3 * materials.sway
        return [AnswerError(f"{BESIDE} {whose}", "before", math.nan, math.nan, relative, relative <= allowed)]
