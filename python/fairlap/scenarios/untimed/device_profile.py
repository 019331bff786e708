"""Where a GPU spends a call: its kernels, copies and fills, from its own records, alike for every framework."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlap.errors import NotAvailable
from fairlap.frameworks.adapter_parts.profiles.profiled_spans import CALL, Span, profiled_calls, write_chrome_trace
from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Profiler

if TYPE_CHECKING:
    from fairlap.engine._native import RecordedCall

NAME = "CUPTI"
_HOST = "calls"
_NUMBERS = re.compile(r"(?<=[a-z])(_\d+)+$")
_WHENEVER = Span(CALL, _HOST, 0.0, float("inf"))


def device_profiler(device: int) -> Profiler:
    return Profiler(NAME, partial(_record, device))


def kernel_named(name: str) -> str:
    """Shorten a kernel's name by its arguments, and by what every kernel of CUDA's has: it returns nothing.

    The numbers that compilers give are left out too, because they differ in every compilation.
    """
    if not name.endswith(")"):
        return _NUMBERS.sub("", name)
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += (name[place] == ")") - (name[place] == "(")
        if not depth:
            return name[:place].removeprefix("void ")
    return name


def _record(device: int, call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    from fairlap.engine.cuda.call_records import recorded_calls

    found = recorded_calls(call, calls, device)
    complete = [each for each in found if each.is_complete]
    if not complete:
        raise NotAvailable(f"{NAME} lost records of each of {calls} calls")
    if trace is not None:
        write_chrome_trace(trace, _all_spans(found), NAME)
    return [_profiled(each) for each in complete]


def _profiled(recorded: RecordedCall) -> ProfiledCall:
    """All that was recorded belongs to the call, whatever its time by the device's clock."""
    [found] = profiled_calls([_WHENEVER], _spans(recorded, recorded.begin_ns))
    return replace(found, wall_ns=float(recorded.end_ns - recorded.begin_ns))


def _spans(recorded: RecordedCall, origin_ns: int) -> Iterator[Span]:
    """List the spans from the origin on: the clock counts from 1970, in more digits than a float has.

    Records that begin before the call, where the clocks of host and device differ, begin with it.
    """
    for name, stream, start_ns, duration_ns in recorded.activities:
        yield Span(kernel_named(name), f"stream {stream}", float(max(0, start_ns - origin_ns)), float(duration_ns))


def _all_spans(found: Sequence[RecordedCall]) -> Iterator[Span]:
    origin_ns = found[0].begin_ns
    for each in found:
        yield Span(CALL, _HOST, float(each.begin_ns - origin_ns), float(each.end_ns - each.begin_ns))
        yield from _spans(each, origin_ns)
