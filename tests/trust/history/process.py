"""One process of a recorded run: calls of one small NumPy work, and its median on standard output in nanoseconds."""

import sys
from collections.abc import Callable

import numpy as np
from fairlap.engine import time_calls

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(256, 1024)).astype(np.float32)
_SQUARE = _RNG.normal(size=(224, 224)).astype(np.float32)
_UNSORTED = _RNG.normal(size=20_000)


def elementwise() -> None:
    hidden = np.maximum(_X * np.float32(1.5) + np.float32(0.1), 0)
    (hidden * hidden).sum()


def product() -> None:
    _SQUARE @ _SQUARE


def sorting() -> None:
    np.sort(_UNSORTED)


WORKS: dict[str, Callable[[], None]] = {each.__name__: each for each in (elementwise, product, sorting)}


def main() -> None:
    samples_ns = time_calls(WORKS[sys.argv[1]], samples=60, warmup=20, calls_per_sample=1).wall_ns
    print(float(np.median(samples_ns)))


if __name__ == "__main__":
    main()
