"""See whether events of a whole context see work on every kind of stream, and what they cost."""

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
IDLE_STREAMS = (0, 32, 256)


def main() -> None:
    context = PrimaryContext()
    spinner = Spinner()
    streams = [context.new_stream() for _ in range(4)]

    def on(*where: int, shares: tuple[int, ...] = (4, 4, 4, 4)) -> Callable[[], None]:
        """Each stream gets so many quarters of the work."""

        def work() -> None:
            for stream, share in zip(where, shares, strict=False):
                spinner.spin_ns(stream, SPIN_NS * share // 4)

        return work

    cases = {
        "a separate stream": on(streams[0]),
        "the legacy default stream": on(LEGACY),
        "the default stream of the thread": on(PER_THREAD),
        "four streams at once": on(*streams),
        "four streams, the last enqueued ends last": on(*streams, shares=(1, 2, 3, 4)),
        "four streams, the first enqueued ends last": on(*streams, shares=(4, 3, 2, 1)),
        "nothing": lambda: None,
    }
    for case, work in cases.items():
        try:
            _report(case, "context_span", work, stream="hidden")
        except NotAvailable as absent:
            raise NotHere(str(absent)) from None
    _report("a separate stream", "device_span", on(streams[0]), stream=streams[0])
    made = 0
    for idle in IDLE_STREAMS:  # an event of the context is recorded in every one of them
        for _ in range(idle - made):
            context.new_stream()
        made = max(made, idle)
        _report(f"a separate stream, beside {idle} idle ones", "context_span", on(streams[0]), stream="hidden")


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
