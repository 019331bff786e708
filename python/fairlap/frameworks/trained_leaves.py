"""Which leaves of a JAX model's parameters are trained. A model shapes its parameters as it likes; only it knows
the way back to the spec's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairlap.workloads.spec import Spec


def trained_leaves(spec: Spec, leaves: list[Any], canonical: Callable[[list[Any]], dict[str, Any]]) -> list[bool]:
    """Each leaf is filled with its own number; the numbers under a weight's name are the leaves it is made of."""
    numbered = [np.full(np.shape(leaf), number, np.float32) for number, leaf in enumerate(leaves)]
    by_name = canonical(numbered)
    found: set[int] = set()
    for weight in spec.weights:
        if weight.trained:
            found.update(int(number) for number in np.unique(by_name[weight.name]))
    return [number in found for number in range(len(leaves))]
