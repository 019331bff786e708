"""Solutions of differential equations: as other outputs, and where a solver gave up, the error says so."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from fairlap.bench_models.initial_value_problems.problem import END
from fairlap.frameworks.solvers.solver_library import EVALUATIONS, STEPS
from fairlap.models.arrays import Arrays
from fairlap.race.equal_work.materials import Materials
from fairlap.scenarios.calls.race.inference import Inference
from fairlap.scenarios.process_result import AnswerError


class Solutions(Inference):
    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        return explained(super().errors(materials, got, which, when), got)


def explained(errors: Sequence[AnswerError], got: Arrays) -> list[AnswerError]:
    """Say of an end that is not a number after how much work the solver gave up."""
    if END not in got or np.isfinite(got[END]).all():
        return list(errors)
    counts = [f"{float(got[name]):,.0f} {name}" for name in (STEPS, EVALUATIONS) if name in got and float(got[name])]
    why = "the solver gave up" + (f" after {' and '.join(counts)}" if counts else "")
    return [msgspec.structs.replace(each, why=why) if each.what == END else each for each in errors]
