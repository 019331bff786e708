"""What roundings inside of a model add to the tolerances of its answers to some inputs.

A sum that is off by one rounding may be divided by a tiny number afterwards: a standardisation divides what the mean of
a plain photo is off by by the root of its epsilon. So the reference is evaluated again with every result moved by what
float32 may lose in it, and that is carried on to the answers. Without a graph to do that with, tolerances are widened
by what long sums over the largest input may lose, as far as the answers show, and by the errors of plain float32 on
inputs nearby.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.checks.long_sums import Addends, widened_by_sums
from fairlap.models.sources.contract import Forward, Opened
from fairlap.models.sources.proof import ROUNDING, InFloat64, Outputs, outputs_of, plain_outputs
from fairlap.models.spec import Tolerance
from fairlap.request.work import Precision

_TIMES_MOVED = 4.0  # what usual roundings move an answer by
_NEARBY = 3
_DRAWS, _DRAWS_OF_FEW, _FEW = 2, 6, 64  # a few numbers may all be moved by next to nothing, by chance

Allowed = dict[Precision, dict[str, Tolerance]]


def repeat_numbers(inputs: Arrays) -> bool:
    """Whether sums over an input may be exact, or rounded alike, in one order of summation and not in another.

    A plain computation in float32 does not show then what others lose.
    """
    return any(Addends.of(array).are_repeated for array in _numbers(inputs))


def _numbers(inputs: Arrays) -> list[np.ndarray]:
    """Leave out ids and masks, which are not added up."""
    return [array for array in inputs.values() if array.dtype.kind == "f" or array.dtype in (np.uint8, np.int8)]


def widened(allowed: Allowed, found: Opened, inputs: Arrays, reference: Outputs) -> Allowed:
    """Widen tolerances to what roundings inside of the model may move its answers to these inputs by.

    In every precision: products of fewer bits are summed in float32 as well.
    """
    if not _numbers(inputs):
        return allowed
    fewest = min((each.size for each in reference.values()), default=0)
    draws = _DRAWS_OF_FEW if fewest <= _FEW else _DRAWS
    movements = None
    if found.roundings_inside is not None:
        with np.errstate(all="ignore"):
            movements = found.roundings_inside(InFloat64(found.weights), dict(InFloat64(inputs)), reference, draws)
    if movements is None:
        allowed = widened_by_long_sums(allowed, found.forward, found.weights, inputs, reference)
        movements = _errors_nearby(found, inputs)
    return widened_by_movements(allowed, movements, reference)


def _errors_nearby(found: Opened, inputs: Arrays) -> list[Outputs]:
    """Find the errors of a plain float32 computation on inputs that are a few roundings larger, equal numbers alike.

    Whole numbers, whose sums may be exact, are none any more.
    """
    errors = []
    for roundings in range(1, _NEARBY + 1):
        factor = np.float32(1 + 2 * roundings * ROUNDING)
        near = {name: array * factor if array.dtype == np.float32 else array for name, array in inputs.items()}
        plain = plain_outputs(found.in_float32, found.weights, near)
        if plain is not None:
            exact = outputs_of(found.forward, found.weights, near)
            same = [name for name, each in exact.items() if plain[name].shape == each.shape]
            errors.append({name: np.abs(plain[name] - exact[name]) for name in same})
    return errors


def widened_by_movements(allowed: Allowed, movements: Sequence[Arrays], reference: Outputs) -> Allowed:
    least = {}
    for name, exact in reference.items():
        by = [each[name] for each in movements if name in each and np.isfinite(each[name]).all()]
        norm = float(np.linalg.norm(exact))
        share = max((float(np.linalg.norm(each)) for each in by), default=0.0) / norm if norm else 0.0
        relative = _TIMES_MOVED * share
        absolute = _TIMES_MOVED * max((float(each.max(initial=0.0)) for each in by), default=0.0)
        least[name] = Tolerance(max(1 - relative**2 / 2, -1.0), absolute, relative)
    return no_narrower(allowed, dict.fromkeys(allowed, least))


def widened_by_long_sums(
    allowed: Allowed,
    forward: Forward,
    weights: Arrays,
    inputs: Arrays,
    reference: Outputs,
) -> Allowed:
    """Widen tolerances to what sums over the largest input, such as a plain photo, may be off by in float32."""
    floats = {name: array for name, array in inputs.items() if array.dtype.kind == "f"}
    if not floats:
        return allowed
    largest = max(floats, key=lambda name: floats[name].size)

    def answers_to(values: np.ndarray) -> Outputs:
        return outputs_of(forward, weights, {**inputs, largest: values})

    least = widened_by_sums(allowed["fp32"], floats[largest], ROUNDING, reference, answers_to)
    return no_narrower(allowed, dict.fromkeys(allowed, least))


def no_narrower(allowed: Allowed, least: Mapping[Precision, Mapping[str, Tolerance]]) -> Allowed:
    return {precision: _each_no_narrower(each, least[precision]) for precision, each in allowed.items()}


def _each_no_narrower(allowed: Mapping[str, Tolerance], least: Mapping[str, Tolerance]) -> dict[str, Tolerance]:
    return {
        name: replace(
            each,
            cosine=min(each.cosine, least[name].cosine),
            absolute=max(each.absolute, least[name].absolute),
            relative=max(each.relative, least[name].relative),
        )
        for name, each in allowed.items()
    }
