"""Where PyTorch spends a call, by ``torch.profiler``. On the CPU, with kernels of ``torch.compile`` by their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlap.frameworks.adapter_parts.profiles.profiled_spans import CALL, Span, profiled_calls
from fairlap.frameworks.contract_parts.profiler import ProfiledCall

_NS_PER_US = 1e3
_HASHED = re.compile(r"^## Call (\w+) \w+ ##$")
_NUMBERED = re.compile(r"^graph_\d+_|: \d+/\d+$|(?<=[a-z])_\d+$")


def record(call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as profiler:
        for _ in range(calls):
            with record_function(CALL):
                call()
    if trace is not None:
        profiler.export_chrome_trace(str(trace))
    spans = [_span(event) for event in profiler.events()]
    marks = [span for span in spans if span.name == CALL]
    return profiled_calls(marks, (span for span in spans if span.name != CALL))


def operator_named(event: str) -> str:
    """Without the numbers and hashes that differ in every compilation, so that two compilations have the same names."""
    if "::" in event:
        return event
    return _NUMBERED.sub("", _HASHED.sub(r"\1", event))


def _span(event: Any) -> Span:
    begin, end = event.time_range.start * _NS_PER_US, event.time_range.end * _NS_PER_US
    return Span(
        operator_named(event.name), event.thread, begin, end - begin, float(event.flops) if event.flops else None
    )


def compiled_for_the_profiler(forward: Any, mode: str | None) -> Any:
    """Compiled once more: kernels of the CPU report themselves only where they were compiled to."""
    import torch

    chosen = dict(torch._inductor.list_mode_options(mode)) if mode else {}
    return torch.compile(forward, options={**chosen, "cpp.enable_kernel_profile": True})
