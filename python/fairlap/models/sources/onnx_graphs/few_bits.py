"""How exact an answer must be of a file that computes in sixteen bits, or in steps of integers.

Right frameworks disagree there: in which results they round, and to which step a value goes that is at an edge. Right
computations show how far that moves each output, in its worst element and in the norm of all, which a few edges hardly
change and a wrong scale does. Some have every result moved by as much as a framework may be off by after one operation,
so that values which are that near to an edge take the other step. In others one value of every quantiser does, far more
often than float32 makes anyone do: a value of 50 steps is within its rounding of an edge once in 100,000 times. The
farthest of them gets a margin that lets no second step pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Forward, RightAnswers
from fairlap.models.sources.proof import Outputs, outputs_of, require_usable
from fairlap.models.spec import Tolerance
from fairlap.request.work import Precision

MARGIN = 1.5  # over the farthest of the right answers
_LEAST = 2.0**-16  # relative: the last operations round as well, as of a model in float32
_LOOSE = 0.1
_COSINE, _LEAST_COSINE = 0.999, 0.9


def tolerances_of_few_bits(
    right: RightAnswers, weights: Arrays, inputs: Arrays, reference: Outputs
) -> dict[Precision, dict[str, Tolerance]]:
    off = {name: _Distance(exact) for name, exact in reference.items()}
    for forwards in (right.rounded, right.on_other_edges):
        for outputs in _usable(forwards, weights, inputs):
            for name, distance in off.items():
                distance.add(outputs[name])
    return {"fp32": {name: distance.tolerance() for name, distance in off.items()}}


def _usable(forwards: Sequence[Forward], weights: Arrays, inputs: Arrays) -> list[Outputs]:
    """Leave out what overflows in sixteen bits, unless all do."""
    answers = [outputs_of(forward, weights, inputs) for forward in forwards]
    finite = [each for each in answers if all(np.isfinite(array).all() for array in each.values())]
    if answers and not finite:
        require_usable(answers[0])
    return finite


class _Distance:
    """How far an answer may be off from the exact one."""

    def __init__(self, exact: npt.NDArray[np.float64]) -> None:
        self._exact, self._norm = exact, float(np.linalg.norm(exact))
        self._worst, self._share = float(_LEAST * self._norm / np.sqrt(max(1, exact.size))), _LEAST

    def add(self, answer: npt.NDArray[np.float64]) -> None:
        difference = answer - self._exact
        self._worst = max(self._worst, MARGIN * float(np.abs(difference).max(initial=0.0)))
        if self._norm:
            self._share = max(self._share, MARGIN * float(np.linalg.norm(difference)) / self._norm)

    def tolerance(self) -> Tolerance:
        cosine = max(min(_COSINE, 1 - self._share**2 / 2), _LEAST_COSINE)
        return Tolerance(cosine, self._worst, _LEAST, self._share)


def loose_of_few_bits(found: dict[str, Tolerance]) -> list[Notice]:
    names = [name for name, each in found.items() if each.norm is not None and each.norm > _LOOSE]
    if not names:
        return []
    most = max(found[name].norm or 0.0 for name in names)
    return [
        Notice(
            "W_LOOSE_CHECK",
            f"rounding to the file's own types moves {', '.join(names)} by so much that answers may be off by "
            f"{100 * most:.2g} % and count as right; other inputs, given with --range or --inputs, may be better",
        )
    ]
