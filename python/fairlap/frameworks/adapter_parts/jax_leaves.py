"""The arrays of a model in JAX: which of them are trained, and how they are parted and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairlap.models.spec import Spec


def trained_leaves(spec: Spec, leaves: list[Any], canonical: Callable[[list[Any]], dict[str, Any]]) -> list[bool]:
    """Each leaf is filled with its own number; the numbers under a weight's name are the leaves it is made of."""
    numbered = [np.full(np.shape(leaf), number, np.float32) for number, leaf in enumerate(leaves)]
    by_name = canonical(numbered)
    found: set[int] = set()
    for weight in spec.weights:
        if weight.trained:
            found.update(int(number) for number in np.unique(by_name[weight.name]))
    return [number in found for number in range(len(leaves))]


def parted(leaves: list[Any], trained: list[bool]) -> tuple[list[Any], list[Any]]:
    pairs = list(zip(leaves, trained, strict=True))
    return [leaf for leaf, learns in pairs if learns], [leaf for leaf, learns in pairs if not learns]


def joined(tree: Any, trained: list[bool], learnt: list[Any], fixed: list[Any]) -> Any:
    import jax

    return jax.tree.unflatten(tree, joined_leaves(trained, learnt, fixed))


def joined_leaves(trained: list[bool], learnt: list[Any], fixed: list[Any]) -> list[Any]:
    first, second = iter(learnt), iter(fixed)
    return [next(first if learns else second) for learns in trained]


def zeros_between(leaves: list[Any], trained: list[bool], gradients: list[Any]) -> list[Any]:
    found = iter(gradients)
    return [
        next(found) if learns else np.zeros(leaf.shape, np.float32)
        for leaf, learns in zip(leaves, trained, strict=True)
    ]
