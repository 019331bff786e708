"""The arguments and right answers of the callables that are not trusted, in a file of their own."""

import numpy as np


def draw_one_us(rng: np.random.Generator) -> np.ndarray:
    return rng.random(1000)


def draw_fifty_us(rng: np.random.Generator) -> np.ndarray:
    return rng.random(5000)


def draw_five_ms(rng: np.random.Generator) -> np.ndarray:
    return rng.random(500_000)


def exact_one_us(a: np.ndarray) -> np.ndarray:
    return a * a + a


def exact_fifty_us(a: np.ndarray) -> np.ndarray:
    return np.sin(a)


def exact_five_ms(a: np.ndarray) -> np.ndarray:
    return np.sin(a)
