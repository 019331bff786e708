"""Where TensorFlow spends a call, by ``tf.profiler``: operations of eager calls, of graphs, and of XLA's programs."""

from __future__ import annotations

import re
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

NAME = "tf.profiler"
_EAGER = re.compile(r"^EagerLocalExecute: (?!__)(\w+)$")  # a function, whose name has underscores, waits for its nodes
_NODE = re.compile(r"^(?!__inference)[\w./^-]+:(_?[A-Z]\w*)$")


def record(call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    with TemporaryDirectory(prefix="fairlap-profile-") as folder:
        tf.profiler.experimental.start(folder, options=options)
        try:
            for _ in range(calls):
                with tf.profiler.experimental.Trace(CALL):
                    call()
        finally:
            tf.profiler.experimental.stop()
        files = list(Path(folder).rglob("*.xplane.pb"))
        if not files:
            raise NotAvailable("tf.profiler wrote no profile")
        content = files[0].read_bytes()
    found = list(spans_in(content))
    if trace is not None:
        write_chrome_trace(trace, (span for span, _ in found), NAME)
    marks = [span for span, _ in found if span.name == CALL]
    return profiled_calls(marks, (span for span, is_operation in found if is_operation))


def spans_in(content: bytes) -> Iterator[tuple[Span, bool]]:
    """Every event of the host with a duration, and whether it is an operation."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    space.ParseFromString(content)
    for plane in space.planes:
        if not plane.name.startswith("/host:CPU"):
            continue
        names = {number: each.name for number, each in plane.event_metadata.items()}
        stats = {number: each.name for number, each in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                if not event.duration_ps:
                    continue
                hlo = next((_text(stat, stats) for stat in event.stats if stats[stat.metadata_id] == "hlo_op"), "")
                event_name = names[event.metadata_id]
                name = hlo_operation(hlo) if hlo else operation_named(event_name)
                start_ns = line.timestamp_ns + event.offset_ps / 1e3
                yield Span(name or event_name, line.id, start_ns, event.duration_ps / 1e3), bool(name)


def _text(stat: Any, stats: dict[int, str]) -> str:
    return str(stat.str_value or stats.get(stat.ref_value, ""))


def operation_named(event_name: str) -> str:
    """Extract the type of an operation, eager or a node of a graph; empty for any other event."""
    for pattern in (_EAGER, _NODE):
        if found := pattern.match(event_name):
            return found[1]
    return ""
