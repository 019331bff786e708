"""Solve Lorenz's equations with SciPy, as its users write it, and print how long quick solves take, in nanoseconds."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from scipy.integrate import solve_ivp  # type: ignore[import-untyped,unused-ignore]


def lorenz(_time: float, state: np.ndarray) -> tuple[float, float, float]:
    x, y, z = state
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


def main() -> None:
    method, *tolerances = sys.argv[1:]
    quick_ns = {}
    for text in tolerances:
        tolerance = float(text)
        times_ns: list[int] = []
        began = time.perf_counter()
        while time.perf_counter() - began < 0.4 or len(times_ns) < 8:
            start = time.perf_counter_ns()
            found = solve_ivp(
                lorenz, (0.0, 5.0), np.array((1.0, 1.0, 1.0)), method, rtol=tolerance, atol=7.0 * tolerance
            )
            found.y[:, -1].sum()
            times_ns.append(time.perf_counter_ns() - start)
        quick_ns[text] = float(np.quantile(times_ns[2:], 0.1))
    print(json.dumps(quick_ns))


if __name__ == "__main__":
    main()
