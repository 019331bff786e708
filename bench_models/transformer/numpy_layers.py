"""Self-attention in NumPy, for the references, in the precision of the inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.elementary import softmax

Array = npt.NDArray[Any]


def attention(query: Array, key: Array, value: Array, heads: int, allowed: Array) -> Array:
    """All are (batch, tokens, hidden). ``allowed`` says which query sees which key: (..., queries, keys)."""
    query, key, value = (_by_head(each, heads) for each in (query, key, value))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])  # a NumPy scalar would make float64 of float32
    attended = softmax(np.where(allowed, scores, -np.inf)) @ value
    batch, _, tokens, _ = attended.shape
    return attended.swapaxes(1, 2).reshape(batch, tokens, -1)


def _by_head(hidden: Array, heads: int) -> Array:
    batch, tokens, features = hidden.shape
    return hidden.reshape(batch, tokens, heads, features // heads).swapaxes(1, 2)
