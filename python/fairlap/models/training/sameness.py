"""Whether a reference gives the same loss and gradients again: one that does not is no reference."""

from __future__ import annotations

import numpy as np

from fairlap.models.training.reference import Slopes

_ROUNDING = 1e-9  # relative, of two evaluations in float64


def are_same(one: Slopes, other: Slopes) -> bool:
    """Compare the gradients relative to the largest of all, so that a loss far from zero does not hide them."""
    pairs = [(array, other.gradients[name]) for name, array in one.gradients.items()]
    largest = max((float(np.abs(array).max(initial=0.0)) for array, _ in pairs), default=0.0)
    if any(np.abs(a - b).max(initial=0.0) > _ROUNDING * largest for a, b in pairs):
        return False
    return abs(one.loss - other.loss) <= _ROUNDING * max(abs(one.loss), largest)
