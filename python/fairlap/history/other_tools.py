"""Results of pytest-benchmark and asv, compared by name with each other and with runs of fairlap.

Both tools report the calls of one process, or mix those of several, so nothing can be claimed from them: how far
processes differ is not known. Files that fairlap wrote for these tools hold a figure for each process and can be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from fairlap import quantity_text, verdict
from fairlap.errors import InvalidRequest
from fairlap.history.gate import Finding, Status, finding_between
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.regular_file import content_of
from fairlap.race.run import Run
from fairlap.request.work_title import work_title

CODE = "E_OTHER_TOOL"
OF_PROCESSES = "fairlap-processes"
"""How a file that fairlap wrote says that its samples are the medians of processes."""

_Time = Annotated[float, msgspec.Meta(gt=0)]


@dataclass(frozen=True)
class Benchmark:
    median_ns: float
    processes_ns: tuple[float, ...] = ()  # none where the calls of processes are mixed, or of one alone


@dataclass(frozen=True)
class Benchmarks:
    """By name, with what is known of the machine by the names of fairlap's facts."""

    tool: str
    by_name: Mapping[str, Benchmark]
    machine: Mapping[str, str]


class _Stats(msgspec.Struct):
    median: _Time
    data: tuple[_Time, ...] = ()


class _OfPytest(msgspec.Struct):
    name: str
    stats: _Stats
    fullname: str = ""
    extra_info: dict[str, Any] = {}


class _PytestBenchmark(msgspec.Struct):
    machine_info: dict[str, Any]
    benchmarks: tuple[_OfPytest, ...]


class _Asv(msgspec.Struct):
    result_columns: tuple[str, ...]
    results: dict[str, tuple[Any, ...]]
    params: dict[str, Any] = {}
    env_name: str = ""


def read_benchmarks(file: Path) -> Benchmarks | None:
    """None for a file of fairlap's own, or one that holds something else."""
    try:
        content = content_of(file)
    except OSError:
        return None
    if b'"machine_info"' not in content and b'"result_columns"' not in content:  # a run file may be large
        return None
    try:
        document = json.loads(content)  # asv writes Infinity, which is no JSON for stricter readers
    except ValueError:
        return None
    try:
        if "result_columns" in document:
            return _of_asv(msgspec.convert(document, _Asv))
        if "machine_info" in document and "benchmarks" in document:
            return _of_pytest(msgspec.convert(document, _PytestBenchmark))
    except (LookupError, TypeError, ValueError, AttributeError, *NOT_THE_DOCUMENT) as error:
        raise InvalidRequest(f"{file} cannot be read as results of a benchmarking tool: {error}", code=CODE) from None
    return None


def benchmark_name(work: str, contestant: str) -> str:
    return f"{work}[{contestant}]"


def benchmarks_of(run: Run) -> Benchmarks:
    """Under the conditions of the verdict, each contestant on each work."""
    found: dict[str, list[float]] = {}
    frameworks = {name.framework for name in run.plan.contestants}
    for process in run.processes:
        if process.finished and process.conditions == run.plan.headline:
            work = run.plan.work_with(process.work_id).label
            name = benchmark_name(work_title(work, run.plan.data, frameworks), process.contestant)
            found.setdefault(name, []).append(process.headline_ns)
    return Benchmarks("fairlap", {name: _of_processes(each) for name, each in found.items()}, run.machine)


def findings_between_benchmarks(before: Benchmarks, after: Benchmarks, *, max_slowdown: float) -> list[Finding]:
    """One for each name that either has."""
    found = [_finding(name, before, after, max_slowdown) for name in before.by_name if name in after.by_name]
    for when, one, other in (("before", before, after), ("after", after, before)):
        found += [Finding(Status.NOT_COMPARABLE, f"only {when}: {name}") for name in one.by_name.keys() - other.by_name]
    return found


def _finding(name: str, before: Benchmarks, after: Benchmarks, max_slowdown: float) -> Finding:
    old, new = before.by_name[name], after.by_name[name]
    medians = f"{quantity_text.duration(old.median_ns)} -> {quantity_text.duration(new.median_ns)}"
    for side, each in ((before, old), (after, new)):
        if len(each.processes_ns) < 2:
            why = f"{side.tool} does not report how processes differ, so no difference can be claimed"
            return Finding(Status.NOT_COMPARABLE, f"{name}: {medians}; {why}")
    both = before.machine.keys() & after.machine.keys()
    if "cpu model" not in both:
        return Finding(Status.NOT_COMPARABLE, f"{name}: {medians}; the processor of a file is not recorded")
    regression = verdict.compare_runs(
        old.processes_ns,
        new.processes_ns,
        environment_before={fact: before.machine[fact] for fact in both},
        environment_after={fact: after.machine[fact] for fact in both},
    )
    if regression.ratio is None:
        why = "; ".join(map(str, regression.warnings))
        return Finding(Status.NOT_COMPARABLE, f"{name}: {medians}; {why}")
    ratio = quantity_text.ratio_interval(regression.ratio, regression.low, regression.high)
    counts = f"{len(old.processes_ns)} and {quantity_text.count(len(new.processes_ns), 'process')}"
    text = f"{name}: {ratio} times as long, {medians}, {counts}"
    return finding_between(regression, text, max_slowdown)


def _of_pytest(document: _PytestBenchmark) -> Benchmarks:
    found = {}
    for each in document.benchmarks:
        by_process = each.extra_info.get("samples") == OF_PROCESSES
        medians_ns = tuple(1e9 * seconds for seconds in each.stats.data) if by_process else ()
        found[each.fullname or each.name] = Benchmark(1e9 * each.stats.median, medians_ns)
    info = document.machine_info
    cpu = info.get("cpu") if isinstance(info.get("cpu"), dict) else {}
    facts = {
        "cpu model": (cpu or {}).get("brand_raw"),
        "cores": (cpu or {}).get("count"),
        "architecture": info.get("machine"),
        "kernel": info.get("release"),
    }
    return Benchmarks("pytest-benchmark", found, _known(facts))


def _of_asv(document: _Asv) -> Benchmarks:
    """Of a benchmark with parameters, each combination is one."""
    found: dict[str, Benchmark] = {}
    for name, values in document.results.items():
        columns = dict(zip(document.result_columns, values, strict=False))
        results, samples = columns.get("result") or [], columns.get("samples") or []
        names = _combinations(name, columns.get("params") or [])
        for place, (each, seconds) in enumerate(zip(names, results, strict=True)):
            if seconds is None or not float(seconds) > 0:  # it failed, or was skipped
                continue
            own = samples[place] if document.env_name == OF_PROCESSES and place < len(samples) else None
            found[each] = Benchmark(1e9 * float(seconds), tuple(1e9 * float(one) for one in own or ()))
    params = document.params
    system, _, release = str(params.get("os", "")).partition(" ")
    facts = {
        "cpu model": params.get("cpu"),
        "cores": params.get("num_cpu"),
        "architecture": params.get("arch"),
        "kernel": release if system == "Linux" else None,
    }
    return Benchmarks("asv", found, _known(facts))


def _combinations(name: str, params: Sequence[Sequence[str]]) -> list[str]:
    names = [""]
    for values in params:
        names = [f"{each}-{value.strip(chr(39))}" for each in names for value in values]
    return [benchmark_name(name, each[1:]) if each else name for each in names]


def _of_processes(medians_ns: Sequence[float]) -> Benchmark:
    return Benchmark(sorted(medians_ns)[len(medians_ns) // 2], tuple(medians_ns))


def _known(facts: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in facts.items() if value}
