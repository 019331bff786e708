"""Inputs and references of the honest callables, by the file that answers them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def values_and_scale(rng: np.random.Generator) -> tuple[Array, float]:
    return rng.standard_normal(200), float(rng.uniform(1, 2))


def scaled_sum(values: Array, scale: float) -> float:
    return float(values.sum()) * scale


def two(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.standard_normal(100, dtype=np.float32), rng.standard_normal(100, dtype=np.float32)


def several(x: Array, y: Array) -> Any:
    return x + y, x - y, float(x[0])


def by_name(x: Array, y: Array) -> dict[str, Array]:
    return {"product": x * y, "sum": x + y}


def waves(rng: np.random.Generator) -> Array:
    drawn: Array = rng.standard_normal(256) + 1j * rng.standard_normal(256)
    return drawn


def spectrum(z: Array) -> Array:
    return np.fft.fft(z)


def numbers(rng: np.random.Generator) -> Array:
    return rng.integers(-(2**40), 2**40, 500)


def order(numbers: Array) -> Array:
    return np.sort(numbers)


def empty(rng: np.random.Generator) -> Array:
    return np.empty((0, 4), np.float32)


def nothing(empty: Array) -> Array:
    return empty


def named(rng: np.random.Generator) -> dict[str, Any]:
    return {"repeat": int(rng.integers(1, 9)), "numbers": rng.integers(0, 100, 50)}


def by_keyword(*, numbers: Array, repeat: int) -> Array:
    return np.repeat(numbers, 2) * repeat


def one(rng: np.random.Generator) -> Array:
    return rng.standard_normal(100, dtype=np.float32)


def flags(x: Array) -> Array:
    found: Array = x > 0
    return found


def tensors(rng: np.random.Generator) -> Any:
    import torch

    return torch.from_numpy(rng.standard_normal((32, 64), dtype=np.float32))


def softmax(x: Any) -> Any:
    import torch

    return torch.softmax(x, 1)


def halves(rng: np.random.Generator) -> Any:
    import torch

    return tensors(rng).to(torch.bfloat16)


def half(x: Any) -> Any:
    import torch

    return torch.relu(x) * 2
