"""Where OpenVINO spends a call, by its performance counters, which are switched on when a model is compiled.

A counter is the average of a node over all calls so far, in whole microseconds, so single calls cannot be separated:
each profiled call is divided as all of them together were. An average alone would be that of the calls that something
else on the machine interrupted, too. There is no timeline, so no trace.

A node whose average has fallen below a microsecond is reported as one that does not run, like those that were fused.
Which nodes run is therefore read from the compiled model; what the counters cut off is part of the call's overhead.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Spent
from fairlap.models.arrays import Arrays

_FIRST_CALLS = 3  # slower than the others by far; they are taken out of the averages
_NS_PER_US = 1e3
_NO_KERNEL = ("unknown", "undef")  # what the plugin calls the kernel of a node that has none


class CountedModel:
    """A model that OpenVINO compiles once more, with counters.

    ``compile_counted`` compiles it, and ``bind_to`` returns an inference request of it with these inputs, and the
    callable that runs it.
    """

    def __init__(
        self, compile_counted: Callable[[], Any], bind_to: Callable[[Any, Arrays], tuple[Any, Callable[[], Any]]]
    ) -> None:
        self._compile_counted, self._bind_to = compile_counted, bind_to
        self._calls = 0

    def bind(self, inputs: Arrays) -> Callable[[], Any]:
        compiled = self._compile_counted()
        self._running = running_nodes(compiled.get_runtime_model().get_ordered_ops())
        self._request, run = self._bind_to(compiled, inputs)

        def counted() -> Any:
            self._calls += 1
            return run()

        return counted

    def record(self, call: Callable[[], Any], calls: int, _trace: Path | None) -> list[ProfiledCall]:
        for _ in range(_FIRST_CALLS):
            call()
        before, calls_before = averages_us(self._request.get_profiling_info(), self._running), self._calls
        walls_ns = []
        for _ in range(calls):
            began_ns = time.perf_counter_ns()
            call()
            walls_ns.append(float(time.perf_counter_ns() - began_ns))
        after = averages_us(self._request.get_profiling_info(), self._running)
        return divided(walls_ns, between(before, calls_before, after, self._calls))


Averages = dict[str, tuple[str, float]]
"""By node: its type, and its average in microseconds."""


def running_nodes(operations: Iterable[Any]) -> set[str]:
    """Name the nodes that have a kernel; inputs, constants and views have none."""
    return {each.get_friendly_name() for each in operations if not _kernel(each).startswith(_NO_KERNEL)}


def _kernel(operation: Any) -> str:
    found = operation.get_rt_info()["primitiveType"]
    return str(getattr(found, "value", found))


def averages_us(counters: Iterable[Any], running: Collection[str]) -> Averages:
    return {
        each.node_name: (each.node_type, each.real_time.total_seconds() * 1e6)
        for each in counters
        if each.node_name in running or each.status.name == "EXECUTED"
    }


def between(before: Averages, calls_before: int, after: Averages, calls_after: int) -> dict[str, Spent]:
    """Compute what a call between these two readings spent, by type of node."""
    nodes: dict[str, list[float]] = defaultdict(list)
    for node, (kind, average_us) in after.items():
        earlier_us = before.get(node, (kind, 0.0))[1] * calls_before
        in_between_us = (average_us * calls_after - earlier_us) / (calls_after - calls_before)
        nodes[kind].append(max(in_between_us, 0.0) * _NS_PER_US)
    return {kind: Spent(len(times_ns), sum(times_ns)) for kind, times_ns in nodes.items()}


def divided(walls_ns: Sequence[float], means: Mapping[str, Spent]) -> list[ProfiledCall]:
    """Each call by the shares that the operators had of the mean call."""
    mean_ns = sum(walls_ns) / len(walls_ns)
    return [
        ProfiledCall(
            wall_ns, {kind: replace(spent, self_ns=spent.self_ns * wall_ns / mean_ns) for kind, spent in means.items()}
        )
        for wall_ns in walls_ns
    ]
