"""Where ONNX Runtime spends a call, by its own profiler, which is switched on when a session is made.

It counts whole microseconds, and operators go by their type, since optimizers rename the nodes that they fuse.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from fairlap.frameworks.adapter_parts.profiles.profiled_spans import Span, profiled_calls
from fairlap.frameworks.contract_parts.profiler import ProfiledCall
from fairlap.machine.files.atomic_files import write_output
from fairlap.models.arrays import Arrays

_NS_PER_US = 1e3
_CALL = "model_run"


class SessionProfiler:
    """``session_of`` makes a session that writes its profile to files with this prefix, and ``bind_to`` binds it."""

    def __init__(self, session_of: Callable[[str], Any], bind_to: Callable[[Any, Arrays], Callable[[], Any]]) -> None:
        self._session_of, self._bind_to = session_of, bind_to
        self._session: Any = None

    def bind(self, inputs: Arrays) -> Callable[[], Any]:
        self._folder = TemporaryDirectory(prefix="fairlap-profile-")
        self._session = self._session_of(str(Path(self._folder.name) / "profile"))
        return self._bind_to(self._session, inputs)

    def record(self, call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
        walls_ns = []
        for _ in range(calls):
            began_ns = time.perf_counter_ns()
            call()
            walls_ns.append(float(time.perf_counter_ns() - began_ns))
        content = Path(self._session.end_profiling()).read_bytes()
        self._folder.cleanup()
        if trace is not None:
            write_output(trace, content)  # it is Chrome's JSON already
        found = calls_in(content)[-calls:]  # the last ones: calls before it began are recorded too
        return [replace(each, wall_ns=wall_ns) for each, wall_ns in zip(found, walls_ns, strict=True)]


class _Event(msgspec.Struct):
    name: str
    ts: float = 0.0
    dur: float = 0.0
    tid: int = 0
    cat: str = ""
    args: dict[str, Any] = {}


def calls_in(content: bytes) -> list[ProfiledCall]:
    """All runs of a session, by the file that it wrote."""
    events = msgspec.json.decode(content, type=list[_Event])
    runs = [_span(event, event.name) for event in events if event.cat == "Session" and event.name == _CALL]
    nodes = [_span(event, event.args["op_name"]) for event in events if event.cat == "Node" and "op_name" in event.args]
    return profiled_calls(runs, nodes)


def _span(event: _Event, name: str) -> Span:
    return Span(name, event.tid, event.ts * _NS_PER_US, event.dur * _NS_PER_US)
