"""Events of a profiler, as spans on threads, and what each profiled call spent in each of its operators.

Operators nest: ``aten::linear`` runs ``aten::addmm``. Each gets the time in itself, so that the times of all add up to
the time of the call. Where operators run in parallel, every thread's time counts, and the sum can exceed the call.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Spent
from fairlap.machine.files.atomic_files import write_output

CALL = "fairlap.call"
"""The name of the span that a profiled call is wrapped in."""

_NUMBERS = re.compile(r"(\.(\d+|clone|remat\d*)|_\d+)+$")


@dataclass(frozen=True)
class Span:
    name: str
    thread: int | str
    start_ns: float
    duration_ns: float
    flops: float | None = None

    @property
    def end_ns(self) -> float:
        return self.start_ns + self.duration_ns


def profiled_calls(calls: Sequence[Span], operators: Iterable[Span]) -> list[ProfiledCall]:
    """Group the operators by call, in order of time.

    An operator belongs to the call in which it starts; those between calls, such as clean-up, belong to none.
    """
    ordered = sorted(calls, key=lambda call: call.start_ns)
    starts = [call.start_ns for call in ordered]
    found: list[dict[str, list[tuple[float, float | None]]]] = [defaultdict(list) for _ in ordered]
    by_thread: dict[int | str, list[Span]] = defaultdict(list)
    for each in operators:
        by_thread[each.thread].append(each)
    for own in by_thread.values():
        for span, self_ns in self_times(own):
            place = bisect_right(starts, span.start_ns) - 1
            if place >= 0 and span.start_ns < ordered[place].end_ns:
                found[place][span.name].append((self_ns, span.flops))
    return [
        ProfiledCall(call.duration_ns, {name: _spent(parts) for name, parts in own.items()})
        for call, own in zip(ordered, found, strict=True)
    ]


def self_times(spans: Sequence[Span]) -> list[tuple[Span, float]]:
    """Of spans of one thread: each without the spans that it contains."""
    inside: dict[int, float] = defaultdict(float)
    ordered = sorted(spans, key=lambda span: (span.start_ns, -span.duration_ns))
    within: dict[int, int] = {}
    open_: list[int] = []
    for place, span in enumerate(ordered):
        while open_ and ordered[open_[-1]].end_ns <= span.start_ns:
            open_.pop()
        if open_:
            within[place] = open_[-1]
            inside[open_[-1]] += min(span.end_ns, ordered[open_[-1]].end_ns) - span.start_ns
        open_.append(place)
    computing = _with_operations_where_they_ran(ordered, within)
    return [(span, max(0.0, span.duration_ns - inside[place])) for place, span in enumerate(computing)]


def _with_operations_where_they_ran(ordered: list[Span], within: dict[int, int]) -> list[Span]:
    """PyTorch counts operations of the outer operator, which only dispatches: the longest one inside ran them."""
    longest: dict[int, int] = {}
    for place, outer in within.items():
        if outer not in longest or ordered[place].duration_ns > ordered[longest[outer]].duration_ns:
            longest[outer] = place
    found = list(ordered)
    for place, span in enumerate(found):  # outer ones come first
        if span.flops is not None and place in longest:
            inner = found[longest[place]]
            found[longest[place]] = replace(inner, flops=(inner.flops or 0.0) + span.flops)
            found[place] = replace(span, flops=None)
    return found


def _spent(parts: Sequence[tuple[float, float | None]]) -> Spent:
    flops = [each for _, each in parts if each is not None]
    return Spent(len(parts), sum(self_ns for self_ns, _ in parts), sum(flops) if flops else None)


def write_chrome_trace(path: Path, spans: Iterable[Span], profiler: str) -> None:
    """As Chrome's JSON, which Perfetto opens too. Times are in microseconds there."""
    numbers: dict[int | str, int] = {}
    events = [
        {
            "name": span.name,
            "ph": "X",
            "pid": 1,
            "tid": numbers.setdefault(span.thread, len(numbers) + 1),
            "ts": span.start_ns / 1e3,
            "dur": span.duration_ns / 1e3,
        }
        for span in spans
    ]
    names = [_named("process_name", profiler)]
    names += [_named("thread_name", str(thread), number) for thread, number in numbers.items()]
    write_output(path, msgspec.json.encode({"traceEvents": [*names, *events], "displayTimeUnit": "ns"}))


def _named(what: str, name: str, thread: int = 0) -> dict[str, object]:
    return {"name": what, "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}}


def hlo_operation(hlo: str) -> str:
    """Drop the numbers of XLA's names: ``broadcast_add_fusion`` for ``broadcast_add_fusion.12.clone``.

    They differ in every compilation, and two compilations must have the same names.
    """
    return _NUMBERS.sub("", hlo.removeprefix("%"))
