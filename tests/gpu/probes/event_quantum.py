"""In what steps do event timestamps go? Kernels of many lengths, each a few cycles longer than the one before."""

from __future__ import annotations

from collections import Counter

import numpy as np
from fairlap.engine.stream_calls import time_on_stream

from ..proof.apart import tell
from ..proof.driver_calls import PrimaryContext
from ..proof.spinner import Spinner

LENGTHS = 150
CYCLES_APART = 97
_SAME_NS = 0.75  # a float of milliseconds is no finer


def main() -> None:
    context = PrimaryContext()
    spinner, stream = Spinner(), context.new_stream()
    spans: list[float] = []
    for number in range(LENGTHS):
        result = time_on_stream(
            lambda number=number: spinner.spin_cycles(stream, 2_000 + number * CYCLES_APART),
            stream=stream,
            samples=5,
            warmup=1,
            calls_per_sample=1,
        )
        spans += result.device_span_ns[~np.isnan(result.device_span_ns)].tolist()
    steps = np.diff(np.unique(np.asarray(spans)))
    steps = steps[steps > _SAME_NS]
    if len(steps) == 0:
        tell(figure="event quantum", ns=None, told="all spans were equal")
        return
    common = Counter(round(step) for step in steps).most_common(3)
    tell(figure="event quantum: smallest step", ns=float(steps.min()), told=f"{len(spans)} spans")
    for step, count in common:
        tell(figure="event quantum: common step", ns=float(step), told=f"{count} of {len(steps)} steps")


if __name__ == "__main__":
    main()
