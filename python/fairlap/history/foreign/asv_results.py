"""The folder ``results`` of asv: machine.json, benchmarks.json and a file for each commit and environment.

Read as `asv show` and `asv publish` read it: only benchmarks of benchmarks.json count, at the version that they have
there, and of a parameterised one the combinations that it still has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any

import msgspec

from fairlap.history.foreign.file_reading import Files, at_milliseconds, refuse, text_of
from fairlap.history.other_tools import OF_PROCESSES
from fairlap.store.foreign_points import ForeignPoint

BENCHMARKS, MACHINE = "benchmarks.json", "machine.json"
_VERSIONS = (1, 2)
_MOST_COMBINATIONS = 1_000_000  # of all benchmarks together
_INTERVAL = "99 % interval, by asv"


class _Machine(msgspec.Struct):
    machine: str
    cpu: str = ""
    num_cpu: str | int = ""
    ram: str = ""


class _Benchmark(msgspec.Struct):
    unit: str = ""
    version: str | int | None = None
    params: list[list[str]] = []
    param_names: list[str] = []


class _File(msgspec.Struct):
    commit_hash: str
    date: float
    params: dict[str, Any]
    results: dict[str, Any]
    env_name: str = ""
    python: str = ""
    result_columns: list[str] = []
    version: int = 1
    benchmark_version: dict[str, Any] = {}  # of version 1


class _Result(msgspec.Struct):
    """Of one benchmark, in either version of the format."""

    result: list[float | None] | None = None
    params: list[list[str]] = []
    version: str | int | None = None
    stats_ci_99_a: list[float | None] | None = None
    stats_ci_99_b: list[float | None] | None = None


def is_results_folder(folder: Path) -> bool:
    return (folder / BENCHMARKS).is_file() or any(folder.glob(f"*/{MACHINE}"))


def asv_points(folder: Path, files: Files, project: str) -> list[ForeignPoint]:
    if not (folder / BENCHMARKS).is_file():
        raise refuse(folder, f"it has no {BENCHMARKS}, which says what the benchmarks are; run asv once")
    listed = files.json(folder / BENCHMARKS)
    listed = {name: each for name, each in listed.items() if isinstance(each, dict)}
    benchmarks = files.converted(folder / BENCHMARKS, listed, dict[str, _Benchmark])
    with files.understood(folder / BENCHMARKS):
        combinations = _combinations(benchmarks)
    points: list[ForeignPoint] = []
    for path in files.walk(folder):
        if path.name in (BENCHMARKS, MACHINE) or path.parent == folder or not (path.parent / MACHINE).is_file():
            continue
        machine = files.read(path.parent / MACHINE, _Machine)
        found = files.read(path, _File)
        if found.version not in _VERSIONS:
            raise refuse(path, f"it has version {found.version} of the format; versions 1 and 2 are read")
        if found.env_name == OF_PROCESSES:
            raise refuse(path, "fairlap wrote it for asv; import the run file instead")
        if found.params.get("machine") == machine.machine:
            with files.understood(path):
                points += _points(found, machine, benchmarks, combinations, project)
        files.require_few(points)
    return points


def _points(
    found: _File,
    machine: _Machine,
    benchmarks: Mapping[str, _Benchmark],
    combinations: Mapping[str, set[tuple[str, ...]]],
    project: str,
) -> Iterator[ForeignPoint]:
    cores = f"{machine.num_cpu} cores" if machine.num_cpu else ""
    where = ", ".join(filter(None, (machine.machine, machine.cpu, cores, machine.ram)))
    for name, result in found.results.items():
        benchmark = benchmarks.get(name)
        if benchmark is None:
            continue
        own = _of_version_1(result, found.benchmark_version.get(name)) if found.version == 1 else _own(found, result)
        if own.version is not None and own.version != benchmark.version:
            continue
        for at, (values, value) in enumerate(zip(product(*own.params), own.result or (), strict=False)):
            if values not in combinations[name] or value is None or not isfinite(value):  # it failed, or was skipped
                continue
            low, high = (_finite(each, at) for each in (own.stats_ci_99_a, own.stats_ci_99_b))
            bounded = low is not None and high is not None
            yield ForeignPoint(
                tool="asv",
                project=project,
                benchmark=text_of(f"{name}({', '.join(values)})" if values else name),
                parameters={
                    text_of(key): text_of(each) for key, each in zip(benchmark.param_names, values, strict=False)
                },
                machine=text_of(where),
                environment=text_of(found.env_name or f"python {found.python}".rstrip()),
                commit=text_of(found.commit_hash),
                branch="",
                at=at_milliseconds(found.date),
                unit=text_of(benchmark.unit),
                value=value,
                low=low if bounded else None,
                high=high if bounded else None,
                interval=_INTERVAL if bounded else "",
            )


def _combinations(benchmarks: Mapping[str, _Benchmark]) -> dict[str, set[tuple[str, ...]]]:
    """List those of parameters that each benchmark has now."""
    if sum(prod(map(len, each.params)) for each in benchmarks.values()) > _MOST_COMBINATIONS:
        raise ValueError(f"its benchmarks have more than {_MOST_COMBINATIONS:,} combinations of parameters")
    return {name: set(product(*each.params)) for name, each in benchmarks.items()}


def _own(found: _File, cells: Any) -> _Result:
    columns = dict(zip(found.result_columns, cells, strict=False))  # what is absent at the end of a line is left out
    known = {key: columns[key] for key in _Result.__struct_fields__ if columns.get(key) is not None}
    return msgspec.convert(known, _Result)


def _finite(ends: Sequence[float | None] | None, at: int) -> float | None:
    end = ends[at] if ends is not None and at < len(ends) else None
    return end if end is not None and isfinite(end) else None


def _of_version_1(value: Any, version: Any) -> _Result:
    """Read a value alone, or one with parameters and statistics."""
    own = value if isinstance(value, dict) else {"result": [value]}
    results, stats = (each if isinstance(each, list) else [each] for each in (own.get("result"), own.get("stats")))
    ends = [[None if each is None else each["ci_99"][end] for each in stats] for end in (0, 1)]
    return msgspec.convert(
        {
            "result": results,
            "params": own.get("params") or [],
            "version": version,
            "stats_ci_99_a": ends[0],
            "stats_ci_99_b": ends[1],
        },
        _Result,
    )
