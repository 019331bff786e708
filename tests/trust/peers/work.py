"""One process of the recording: a NumPy expression of about a millisecond that allocates what it computes."""

import sys

import numpy as np
from fairlap.engine import time_calls

SAMPLES = 60
_RNG = np.random.default_rng(0)
_X, _BIAS = _RNG.normal(size=(512, 1024)).astype(np.float32), np.float32(0.1)


def expression() -> float:
    hidden = np.maximum(_X * np.float32(1.5) + _BIAS, 0)
    return float((hidden * hidden).sum())


def main() -> None:
    samples_ns = time_calls(expression, samples=SAMPLES, warmup=20, calls_per_sample=1).wall_ns
    sys.stdout.buffer.write(np.asarray(samples_ns, dtype="<f8").tobytes())


if __name__ == "__main__":
    main()
