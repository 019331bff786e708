"""The files of pytest-benchmark: one for each run, below ``.benchmarks/``."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from fairlap.history.foreign.file_reading import Files, at_text, refuse, text_of
from fairlap.history.other_tools import OF_PROCESSES
from fairlap.store.foreign_points import ForeignPoint


class _Stats(msgspec.Struct):
    median: float


class _Benchmark(msgspec.Struct):
    name: str
    stats: _Stats
    fullname: str = ""
    params: dict[str, Any] | None = None
    extra_info: dict[str, Any] = {}


class _Commit(msgspec.Struct):
    id: str = ""
    branch: str | None = None
    project: str = ""


class _Cpu(msgspec.Struct):
    brand_raw: str = ""
    count: str | int = ""


class _Machine(msgspec.Struct):
    system: str = ""
    machine: str = ""
    processor: str = ""
    python_implementation: str = ""
    python_version: str = ""
    cpu: _Cpu | None = None


class _File(msgspec.Struct):
    machine_info: _Machine
    benchmarks: list[_Benchmark]
    datetime: str
    commit_info: _Commit = msgspec.field(default_factory=_Commit)


def is_pytest_file(document: dict[str, Any]) -> bool:
    return isinstance(document.get("machine_info"), dict) and "benchmarks" in document


def pytest_points(path: Path, files: Files, document: dict[str, Any], project: str) -> list[ForeignPoint]:
    found = files.converted(path, document, _File)
    if any(each.extra_info.get("samples") == OF_PROCESSES for each in found.benchmarks):
        raise refuse(path, "fairlap wrote it for pytest-benchmark; import the run file instead")
    info, cpu = found.machine_info, found.machine_info.cpu or _Cpu()
    processor = cpu.brand_raw or info.processor or info.machine
    cores = f"{cpu.count} {'core' if str(cpu.count) == '1' else 'cores'}" if cpu.count else ""
    with files.understood(path):
        at = at_text(found.datetime)
    return [
        ForeignPoint(
            tool="pytest-benchmark",
            project=text_of(project or found.commit_info.project),
            benchmark=text_of(each.fullname or each.name),
            parameters={text_of(name): text_of(value) for name, value in (each.params or {}).items()},
            machine=text_of(", ".join(filter(None, (info.system, processor, cores)))),
            environment=text_of(f"{info.python_implementation} {info.python_version}".strip()),
            commit=text_of(found.commit_info.id),
            branch=text_of(found.commit_info.branch or ""),
            at=at,
            unit="seconds",
            value=each.stats.median,
            low=None,
            high=None,
            interval="",
        )
        for each in found.benchmarks
        if isfinite(each.stats.median)
    ]
