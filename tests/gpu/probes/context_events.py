"""Do events of a whole context see work on every kind of stream, and what do they cost?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.errors import NotAvailable

from ..proof.driver import PrimaryContext, Spinner
from ..proof.json_lines import report, run_program
from ..proof.record import NotHere

SPIN_NS = 200_000
LEGACY, PER_THREAD = 1, 2


def main() -> None:
    context = PrimaryContext()
    spinner = Spinner()
    streams = [context.new_stream() for _ in range(4)]

    def on(*where: int) -> Callable[[], None]:
        def work() -> None:
            for stream in where:
                spinner.spin_ns(stream, SPIN_NS)

        return work

    cases = {
        "a separate stream": on(streams[0]),
        "the legacy default stream": on(LEGACY),
        "the default stream of the thread": on(PER_THREAD),
        "four streams at once": on(*streams),
        "nothing": lambda: None,
    }
    for case, work in cases.items():
        try:
            _report(case, "context_span", work, stream="hidden")
        except NotAvailable as absent:
            raise NotHere(str(absent)) from None
    _report("a separate stream", "device_span", on(streams[0]), stream=streams[0])


def _report(case: str, method: str, work: Callable[[], None], stream: Any) -> None:
    result = time_on_stream(work, stream=stream, method=method, samples=100, warmup=5, calls_per_sample=1)  # type: ignore[arg-type]
    report(
        case=f"{method}: {case}",
        ns=result.median_ns,
        expected_ns=0 if case == "nothing" else SPIN_NS,
        invalid=sum(result.invalid.values()),
        host_ns_per_sample=result.elapsed_s * 1e9 / max(1, result.samples),
    )


if __name__ == "__main__":
    run_program(main)
