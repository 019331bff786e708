"""In what steps do event timestamps go? Kernels of many lengths, each a few cycles longer than the one before."""

from __future__ import annotations

from collections import Counter

import numpy as np
from fairlap.engine.cuda.stream_calls import time_on_stream

from ..proof.driver import PrimaryContext, Spinner
from ..proof.json_lines import report

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
        report(figure="event quantum", ns=None, note="all spans were equal")
        return
    common = Counter(round(step) for step in steps).most_common(3)
    report(figure="event quantum: smallest step", ns=float(steps.min()), note=f"{len(spans)} spans")
    for step, count in common:
        report(figure="event quantum: common step", ns=float(step), note=f"{count} of {len(steps)} steps")


if __name__ == "__main__":
    main()
