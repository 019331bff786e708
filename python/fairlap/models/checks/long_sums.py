"""How far long sums may be off: those of equal numbers by more than those of different ones.

Added one after the other, n numbers are rounded n times, each time by at most half a unit in the last place of the sum
so far (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). Where the numbers differ, the roundings
are random, and add up as the square root of n. They are no longer where the sum has lost most digits of its next
number: a share of about n * roundoff of them is then biased. Equal numbers are rounded equally for as long as their sum
stays between two powers of two, so their roundings add up as n: to n / 2 roundings of the sum.

How many numbers enter an answer with one sign shows in the reference: where all of them are moved upwards it moves n
times as far as for one, and where each is moved at random as far as the square root of n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.spec import Tolerance

STEP = 2.0**-24  # by which numbers are moved, in float64
_COUNTED = 2**14  # numbers: of more, as many are drawn
_DRAWS, _DRAWS_OF_FEW, _FEW = 2, 8, 64  # a single number may be moved by next to nothing, by chance
_REPEATED = 4.0
_LEAST_COSINE = 0.9

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Addends:
    """The numbers of an input that are not 0. ``equal`` is how many have the value of one, on average over all.

    ``rows`` are as many parts of the input as the answer has, where each part of it is likely to follow from one.
    """

    count: float
    equal: float
    rows: int = 1

    @classmethod
    def of(cls, values: Array, answers: Iterable[Array] = ()) -> Addends:
        counted = values.reshape(-1)
        if counted.size > _COUNTED:
            counted = counted[np.random.default_rng(0).integers(0, counted.size, _COUNTED)]
        kinds, counts = np.unique(counted, return_counts=True)
        counts = counts[kinds != 0].astype(np.float64)
        here = float(counts.sum())
        if not here:
            return cls(0.0, 1.0)
        count = values.size * here / counted.size
        others = float((counts * (counts - 1)).sum()) / here  # equal ones among those that were counted
        others *= (count - 1) / max(1.0, here - 1)
        equal = 1 + others if counted.size == values.size else max(1.0, others)  # drawn, it meets itself
        shapes = {each.shape[:1] for each in answers}
        return cls(count, equal, values.shape[0] if shapes == {values.shape[:1]} and values.ndim else 1)

    @property
    def are_repeated(self) -> bool:
        return self.equal > _REPEATED

    def most_roundings(self, roundoff: float) -> float:
        """Those of a sum of all of them, and where they differ of those of one row."""
        return self._roundings(self.count if self.are_repeated else self.count / self.rows, roundoff)

    def roundings(self, upwards: Array, at_random: Sequence[Array], roundoff: float) -> float:
        """Count those, of itself, that an answer may be off by, from how far it moves with the numbers."""
        together = _mean_square(upwards)
        apart = float(np.mean([_mean_square(each) for each in at_random]))
        if not (together > 0 and math.isfinite(together) and math.isfinite(apart)):
            return 0.0
        return self._roundings(together / apart if together < self.count * apart else self.count, roundoff)

    def _roundings(self, of_one_sign: float, roundoff: float) -> float:
        random = 2 * math.sqrt(of_one_sign * self.equal)
        biased = of_one_sign * self.count / self.rows * roundoff
        return min(of_one_sign, self.count / 2, random + biased)


def draws_for(answers: Mapping[str, Array]) -> int:
    """How often to move numbers at random."""
    return _DRAWS_OF_FEW if min((each.size for each in answers.values()), default=0) <= _FEW else _DRAWS


def widened_by_sums(
    allowed: Mapping[str, Tolerance],
    values: Array,
    roundoff: float,
    reference: Mapping[str, Array],
    answers_to: Callable[[Array], Mapping[str, Array]],
) -> dict[str, Tolerance]:
    """Widen tolerances to what sums of an input's ``values`` may be off by; ``answers_to`` others is the reference.

    It is evaluated only where that can be more than is allowed already, which it hardly is for inputs that are drawn.
    """
    addends = Addends.of(values, reference.values())
    if roundoff * addends.most_roundings(roundoff) <= min(
        (each.relative for each in allowed.values()), default=math.inf
    ):
        return dict(allowed)
    rng, wide = np.random.default_rng(0), values.astype(np.result_type(values.dtype, np.float64))
    upwards = _movements(answers_to(wide * (1 + STEP)), reference)
    at_random = [
        _movements(answers_to(wide * (1 + STEP * rng.choice((-1.0, 1.0), wide.shape))), reference)
        for _ in range(draws_for(reference))
    ]
    found = dict(allowed)
    for name in upwards:
        drawn = [moved[name] for moved in at_random if name in moved]
        if drawn and name in found:
            roundings = addends.roundings(upwards[name], drawn, roundoff)
            found[name] = _widened(found[name], reference[name], upwards[name], roundings * roundoff)
    return found


def _movements(answers: Mapping[str, Array], reference: Mapping[str, Array]) -> dict[str, Array]:
    """Leave out answers that have another shape then."""
    return {
        name: np.abs(answers[name] - exact)
        for name, exact in reference.items()
        if name in answers and answers[name].shape == exact.shape
    }


def _widened(tolerance: Tolerance, exact: Array, upwards: Array, rounded: float) -> Tolerance:
    """At least the answer itself is rounded: a larger number may be added to what the input makes."""
    norm = float(np.linalg.norm(exact))
    scale = float(np.sqrt(np.mean(np.square(exact)))) if exact.size else 0.0
    share = float(np.linalg.norm(upwards)) / STEP / norm if norm else 0.0
    relative = max(tolerance.relative, rounded * max(1.0, share))
    absolute = max(tolerance.absolute, rounded * max(scale, float(upwards.max(initial=0.0)) / STEP))
    cosine = min(tolerance.cosine, max(1 - relative**2 / 2, _LEAST_COSINE))
    return replace(tolerance, cosine=cosine, absolute=absolute, relative=relative)


def _mean_square(values: Array) -> float:
    return float(np.mean(np.square(values))) if values.size else 0.0
