"""Fields on a square grid whose edges meet: the axes are the last two, in NumPy, JAX, PyTorch and TensorFlow alike."""

from __future__ import annotations

from typing import Any


def laplacian(field: Any, arrays: Any, spacing: float) -> Any:
    """Sum the second differences along both axes."""
    around = arrays.roll(field, 1, -1) + arrays.roll(field, -1, -1) + arrays.roll(field, 1, -2)
    return (around + arrays.roll(field, -1, -2) - 4 * field) / (spacing * spacing)
