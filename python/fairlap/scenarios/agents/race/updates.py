"""An update of an agent against the reference: each loss and norm, the first gradient, and how all weights changed."""

from __future__ import annotations

import numpy as np

from fairlap.bench_models.agents.algorithm import AFTER, GRADIENT, LOSSES
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.scenarios.calls.race.inference import Inference
from fairlap.scenarios.process_result import AnswerError

LARGEST_CHANGE = 1e-2
"""Of the norm of the difference over that of what an update changes in a weight. Rounding makes it some 1e-4."""

_OF_FIRST, _OF_PARTS = 1e-3, 1e-2  # rounding grows from part to part
_ANY = float("inf")


class Updates(Inference):
    tells_inputs_apart = True

    def errors(self, materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
        found = []
        for name, expected in materials.reference(which).items():
            if name not in got or got[name].shape != expected.shape:
                raise OtherWork(f"its answer lacks {name} of the shape {list(expected.shape)}", "E_OUTPUT")
            if name.startswith(AFTER):
                before = materials.weights[name.removeprefix(AFTER)].astype(np.float64)
                change, allowed = got[name].astype(np.float64) - before, Tolerance(-1.0, _ANY, 0.0, LARGEST_CHANGE)
                found.append(answers.answer_error(name, when, change, expected - before, allowed))
            else:
                largest = _OF_FIRST if name.startswith(GRADIENT) else _OF_PARTS
                off = largest * float(np.abs(expected).max())
                allowed = Tolerance(-1.0, off, largest if name == LOSSES else 0.0, largest)
                found.append(answers.answer_error(name, when, got[name], expected, allowed))
        return found
