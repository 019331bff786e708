"""Numbers to be summed, and the orders in which right computations add up float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
LENGTHS = (100, 9_216, 100_000, 1_000_000)


def one_by_one(values: Array) -> float:
    return float(np.add.accumulate(values, dtype=np.float32)[-1])


def in_pairs(values: Array) -> float:
    return float(np.sum(values, dtype=np.float32))


def in_blocks(values: Array, lanes: int = 8) -> float:
    whole = values[: values.size // lanes * lanes].reshape(-1, lanes)
    sums = np.add.accumulate(whole, axis=0, dtype=np.float32)[-1]
    return one_by_one(np.concatenate([sums, values[whole.size :]]))


ORDERS: tuple[Callable[[Array], float], ...] = (one_by_one, in_pairs, in_blocks, lambda all_: in_blocks(all_, 64))


def of_photo(count: int) -> Array:
    return (np.random.default_rng(2).integers(0, 256, count) / 255).astype(np.float32)


NUMBERS: dict[str, Callable[[int], Array]] = {
    "a third": lambda count: np.full(count, 1 / 3, np.float32),
    "a tenth": lambda count: np.full(count, 0.1, np.float32),
    "a white photo, normalised": lambda count: np.full(count, (1 - 0.456) / 0.224, np.float32),
    "nearly one": lambda count: np.full(count, 1 - 2**-20, np.float32),
    "minus a third": lambda count: np.full(count, -1 / 3, np.float32),
    "half white": lambda count: np.where(np.arange(count) < count // 2, 0.7, of_photo(count)).astype(np.float32),
    "eight bits": of_photo,
    "different": lambda count: np.random.default_rng(3).random(count, np.float32),
    "squares": lambda count: np.square(np.random.default_rng(4).standard_normal(count, np.float32)),
    "of both signs": lambda count: np.random.default_rng(5).standard_normal(count, np.float32),
}
