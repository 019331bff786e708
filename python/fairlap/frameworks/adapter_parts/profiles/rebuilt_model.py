"""Profilers that have to be switched on when a model is built: it is built once more for them, when they are used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Profiler
from fairlap.models.arrays import Arrays


class RebuiltModel(Protocol):
    """``bind`` builds the model with its profiler on; ``record`` calls what the last ``bind`` returned."""

    def bind(self, inputs: Arrays) -> Callable[[], Any]: ...

    def record(self, call: Callable[[], Any], calls: int, trace: Path | None, /) -> list[ProfiledCall]: ...


def profiler_of_rebuilt(name: str, rebuild: Callable[[], RebuiltModel]) -> Profiler:
    """``rebuild`` is called at each ``bind``, and imports what only profiling needs."""
    profiled = _LastRebuilt(rebuild)
    return Profiler(name, profiled.record, profiled.bind)


class _LastRebuilt:
    def __init__(self, rebuild: Callable[[], RebuiltModel]) -> None:
        self._rebuild = rebuild

    def bind(self, inputs: Arrays) -> Callable[[], Any]:
        self._model = self._rebuild()
        return self._model.bind(inputs)

    def record(self, call: Callable[[], Any], calls: int, trace: Path | None) -> list[ProfiledCall]:
        return self._model.record(call, calls, trace)
