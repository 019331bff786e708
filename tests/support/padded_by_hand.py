"""A loop by hand over sequences, padded or not, in plain PyTorch or JAX: ``FRAMEWORK BUCKETS LENGTHS``.

Prints how long calls of each length take, how many programs were compiled, and how far padded answers are from others.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import defaultdict

import numpy as np
from own_lengths import in_jax_by_hand, in_torch_by_hand, tokens

ROUNDS = 40


def padded(array: np.ndarray, length: int) -> np.ndarray:
    found = np.zeros((1, length), array.dtype)
    found[:, : array.shape[1]] = array
    return found


def main() -> None:
    framework, buckets, listed = sys.argv[1:]
    call, compiled = {"jax": in_jax_by_hand, "torch": in_torch_by_hand}[framework]()
    lengths = [int(each) for each in listed.split(",")]
    sizes = [int(each) for each in buckets.split("+")] if buckets != "none" else []
    to = {length: min((size for size in sizes if size >= length), default=length) for length in lengths}
    inputs = {length: tokens(length) for length in lengths}
    apart = 0.0
    for length, (ids, mask) in inputs.items():
        call(padded(ids, to[length]), padded(mask, to[length]))
    graphs = compiled()
    for length, (ids, mask) in inputs.items():
        found = np.asarray(call(padded(ids, to[length]), padded(mask, to[length])))[:, :length]
        apart = max(apart, float(np.abs(found - np.asarray(call(ids, mask))).max()))
    times: dict[int, list[float]] = defaultdict(list)
    order = random.Random(1).sample(lengths, len(lengths))
    for _ in range(ROUNDS):
        for length in order:
            ids, mask = inputs[length]
            size = to[length]
            began_ns = time.perf_counter_ns()
            if sizes:
                call(padded(ids, size), padded(mask, size))
            else:
                call(ids, mask)
            times[length].append(time.perf_counter_ns() - began_ns)
    quick_ns = {length: float(np.quantile(taken, 0.1)) for length, taken in times.items()}
    print(json.dumps({"quick_ns": quick_ns, "compiled": graphs, "apart": apart}))


if __name__ == "__main__":
    main()
