"""A benchmark of an existing suite as a contestant: each call asks its process for one sample.

A sample is what asv or pytest-benchmark would take, setup before it not included: the time of so many calls, or, once
in a process, the peak of its memory or a value that it returns. The sample ranks it, not the time of the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec

from fairlap.frameworks.adapter_parts.answers import Answers, named_outputs
from fairlap.frameworks.contract import (
    NO_WEIGHTS,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.frameworks.suites.child_process import BenchmarkFailed, BenchmarkProcess, Member, Reply
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.request.names import BENCHMARK, PATH, REPORTED, UNIT, VALUE

_ONLY_MODEL = "callable"
_TIMED = ("time", "timeraw")
_MEANING = {"peakmem": "peak memory", "mem": "size of the object"}
_BETWEEN_KNOWN_S = 1e-3  # the value of a process is known after its first call, and the others only repeat it


class SuiteBenchmark(Framework):
    name = BENCHMARK
    packages = ("pytest==9.2.0",)  # installed besides what is raced, where that has its own environment
    module = "subprocess"
    options: ClassVar = {**dict.fromkeys(Member.__struct_fields__, ()), PATH: ()}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        if work.spec.name != _ONLY_MODEL:
            raise Unsupported(f"benchmarks of suites run themselves, not models; use the model {_ONLY_MODEL!r}")
        given = dict(wanted.options)
        side = given.pop(PATH, "")
        member = msgspec.convert(given, Member)
        with phase("build"):
            process = BenchmarkProcess("run", member, side, within=True)
            ready = process.reply()
            require_from_side(ready, side)
        samples = Samples(process, ready) if ready.kind in _TIMED else Values(process, ready)

        def bind(inputs: Arrays) -> Callable[[], Any]:
            ticket = inputs["ticket"]

            def call() -> Any:
                samples.take()
                return ticket

            return call

        def outputs(ticket: Any) -> Answers:
            return named_outputs(work.spec, [ticket])

        in_force = {"threads": "the benchmark's own", "precision": NO_WEIGHTS, REPORTED: "the benchmark"}
        if isinstance(samples, Values):
            in_force |= {VALUE: _MEANING.get(ready.kind) or _words(member.name, ready.unit), UNIT: ready.unit}
        return Contestant(
            bind=bind,
            done=None,
            outputs=outputs,
            weights=dict,
            in_force=in_force,
            work_in="child",
            own_times=samples,
            peak_of_runs=lambda _own_bytes: samples.peak_bytes or "it did not run",
        )

    def version(self) -> str:
        return ""


class Samples:
    """The times of one process, as they come in the timed calls."""

    method = "repeated calls in the benchmark's process, stamped natively, setup not included"

    def __init__(self, process: BenchmarkProcess, ready: Reply) -> None:
        self._process, self._limit_s = process, ready.timeout_s
        self._kept: list[float] = []
        self.peak_bytes = 0

    def take(self) -> None:
        self._kept.append(self._sample())

    def _sample(self) -> float:
        self._process.ask()
        try:
            found = self._process.reply() if self._limit_s is None else self._process.reply(self._limit_s)
        except BenchmarkFailed:
            self._process.end()
            raise
        assert found.value is not None
        self.peak_bytes = max(self.peak_bytes, found.peak_bytes)
        return found.value

    def newest_ns(self, calls: int) -> Sequence[float]:
        kept, self._kept = self._kept[-calls:], []
        return kept


class Values(Samples):
    """The one value of a process, taken by its first call and repeated by the others."""

    method = "one value of each process"

    def __init__(self, process: BenchmarkProcess, ready: Reply) -> None:
        super().__init__(process, ready)
        self.unit = ready.unit
        self._known: float | None = None

    def take(self) -> None:
        if self._known is None:
            self._known = self._sample()
        else:
            time.sleep(_BETWEEN_KNOWN_S)
        self._kept.append(self._known)


def require_from_side(ready: Reply, side: str) -> None:
    """Refuse one that would be the same for both sides."""
    if side and not ready.from_side:
        raise BenchmarkFailed(f"it imports nothing from {side}; is the project built there?")


def _words(name: str, unit: str) -> str:
    """``track_solver_iterations`` as its readers know it, with its unit."""
    function = name.partition("(")[0].rpartition(".")[2].removeprefix("track_")
    words = function.replace("_", " ").strip() or "value"
    return words if unit in ("", "unit", words) else f"{words} ({unit})"
