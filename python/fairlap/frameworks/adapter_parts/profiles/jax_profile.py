"""Where JAX spends a call, by ``jax.profiler``: the operations of the compiled program, by XLA's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairlap.errors import NotAvailable
from fairlap.frameworks.adapter_parts.profiles.profiled_spans import (
    CALL,
    Span,
    hlo_operation,
    profiled_calls,
    write_chrome_trace,
)
from fairlap.frameworks.contract_parts.profiler import ProfiledCall

NAME = "jax.profiler"


def record(call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # a frame for every Python call would slow down what is between operations
    with TemporaryDirectory(prefix="fairlap-profile-") as folder:
        jax.profiler.start_trace(folder, profiler_options=options)
        try:
            for _ in range(calls):
                with jax.profiler.TraceAnnotation(CALL):
                    call()
        finally:
            jax.profiler.stop_trace()
        files = list(Path(folder).rglob("*.xplane.pb"))
        if not files:
            raise NotAvailable("jax.profiler wrote no profile")
        found = list(spans_in(jax.profiler.ProfileData.from_file(str(files[0]))))
    if trace is not None:
        write_chrome_trace(trace, (span for span, _ in found), NAME)
    marks = [span for span, _ in found if span.name == CALL]
    return profiled_calls(marks, (span for span, is_operation in found if is_operation))


def spans_in(data: Any) -> Iterator[tuple[Span, bool]]:
    """Every event of the host with a duration, and whether it is an operation of a program."""
    for plane in data.planes:
        if not plane.name.startswith("/host:CPU"):
            continue
        for line in plane.lines:
            for event in line.events:
                if event.duration_ns <= 0:
                    continue
                operation = next((value for name, value in event.stats if name == "hlo_op"), None)
                name = event.name if operation is None else hlo_operation(str(operation))
                yield Span(name, line.name, event.start_ns, event.duration_ns), operation is not None
