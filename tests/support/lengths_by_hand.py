"""A loop by hand over a file of lengths, in plain ONNX Runtime or JAX and without fairlap: ``FRAMEWORK MODEL LENGTHS``.

Prints the median time of a call at each length, weighted by how often it occurs, and how many programs were compiled.
"""

from __future__ import annotations

import csv
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROUNDS = 25


def with_onnxruntime(model: str) -> tuple[Callable[[np.ndarray], Any], Callable[[], int | None]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda ids: session.run(None, {"ids": ids}), lambda: None


def with_jax(_model: str) -> tuple[Callable[[np.ndarray], Any], Callable[[], int | None]]:
    import jax
    from small_transformer import by_hand, weights

    held = jax.device_put(weights())
    answer = jax.jit(lambda held, ids: by_hand(jax.numpy, held, ids))
    return lambda ids: jax.block_until_ready(answer(held, ids)), lambda: int(answer._cache_size())


def main() -> None:
    framework, model, file = sys.argv[1:]
    with Path(file).open() as opened:
        lengths = [int(row["sequence"]) for row in csv.DictReader(opened)]
    call, compiled = {"onnxruntime": with_onnxruntime, "jax": with_jax}[framework](model)
    rng = np.random.default_rng(0)
    inputs = {length: rng.integers(0, 500, (1, length)) for length in set(lengths)}
    times: dict[int, list[float]] = defaultdict(list)
    order = random.Random(1).sample(lengths, len(lengths))
    for length in inputs:
        call(inputs[length])
    for _ in range(ROUNDS):
        for length in order:
            began_ns = time.perf_counter_ns()
            call(inputs[length])
            times[length].append(time.perf_counter_ns() - began_ns)
    counts = Counter(lengths)
    found = {
        "call_ns": sum(counts[length] * median(taken) for length, taken in times.items()) / len(lengths),
        "quick_ns": {length: float(np.quantile(taken, 0.1)) for length, taken in times.items()},
        "compiled": compiled(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
