"""The time that a program reports of its own work, read from what it prints or writes.

Each format has a reader, which gives the repetitions of every benchmark in the report, in nanoseconds. A benchmark that
has no time, because it failed or is of another unit, has the reason instead.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from fairlap import quantity_text
from fairlap.errors import FairlapError, shortened
from fairlap.request.commands import ReportFormat

Benchmarks = dict[str, list[float] | str]

NS: Mapping[str, float] = {
    **dict.fromkeys(("ps",), 1e-3),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1.0),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e3),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e6),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1e9),
}

HOW_TO_REPORT: Mapping[ReportFormat, str] = {
    "google-benchmark": "add --benchmark_format=json, or --benchmark_out={report} --benchmark_out_format=json",
    "pyperf": "add -o {report}",
    "hyperfine": "add --export-json {report}",
    "criterion": "use `cargo bench`, `cargo criterion --message-format=json`, or `env CRITERION_HOME={report} PROGRAM`",
    "nvbench": "add --json {report}",
    "number": 'print a number with a unit of time, such as "12.5 ms"',
}
"""What makes a program write this format; fairlap puts a path in the place of {report}."""

_MOST_LISTED = 6
_MOST_NAME = 60


class NoReport(FairlapError):
    """The text is not of this format."""

    code = "E_REPORT"


class BadReport(FairlapError):
    """The text is of this format and has no time that could be used."""

    code = "E_REPORT"


def reported_time(text: str, format_: ReportFormat, name: str = "") -> tuple[str, float]:
    """Read the benchmark's name and the median of its repetitions in nanoseconds."""
    if format_ == "number":
        return name, _usable(_last_number(text, name), name)
    found = _READERS[format_](text)
    if not found:
        raise NoReport("it holds no benchmark")
    chosen = _chosen(found, format_, name)
    return chosen, _usable(found[chosen], chosen)


def _chosen(found: Benchmarks, format_: ReportFormat, name: str) -> str:
    """By its whole name, or by what precedes its parameters where that is enough: "sum" for "sum/min_time:0.020"."""
    if not name and len(found) == 1:
        return next(iter(found))
    near = [name] if name in found else [each for each in found if name and each.startswith(f"{name}/")]
    if len(near) == 1:
        return near[0]
    names = ", ".join(shortened(each, _MOST_NAME) or "(no name)" for each in list(found)[:_MOST_LISTED])
    listed = f"{names}{', ...' if len(found) > _MOST_LISTED else ''}"
    if name and not near:
        raise BadReport(f"it has no benchmark {name!r}; it has {listed}")
    held = quantity_text.count(len(near or found), "benchmark")
    raise BadReport(f"it holds {held}; name one, --reported {format_}:NAME, of {listed}")


def _usable(times_ns: Sequence[float] | str, name: str) -> float:
    whose = f"benchmark {name!r}" if name else "its benchmark"
    if isinstance(times_ns, str):
        raise BadReport(f"{whose} {times_ns}")
    if not times_ns:
        raise BadReport(f"{whose} has no time")
    time_ns = median(times_ns)
    if not (math.isfinite(time_ns) and time_ns > 0):
        raise BadReport(f"{whose} took {time_ns:g} ns, which is not a time above 0")
    return time_ns


def _not_a_time(unit: str) -> str:
    return f"is in {shortened(unit, _MOST_NAME) or 'no unit'}, which is not a unit of time"


_OBJECT = re.compile(r"^\{", re.MULTILINE)


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """Find the JSON objects among other output, each of which begins a line."""
    decoder, end = json.JSONDecoder(), 0
    for found in _OBJECT.finditer(text):
        if found.start() < end:
            continue
        try:
            document, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        yield document


def _read(document: dict[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise BadReport(f"it is not laid out as documented: {error}") from None


class _GoogleBenchmark(msgspec.Struct):
    name: str
    run_name: str = ""
    run_type: str = ""  # absent before version 1.4.1
    aggregate_name: str = ""
    real_time: float | None = None
    time_unit: str = "ns"
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""


class _GoogleReport(msgspec.Struct):
    benchmarks: tuple[_GoogleBenchmark, ...]


_AGGREGATE = re.compile(r"(?P<run>.+)_(?P<aggregate>mean|median|stddev|cv|BigO|RMS)")


def _google_benchmark(text: str) -> Benchmarks:
    """Real time, of the repetitions; where only aggregates are written, their median, or else their mean."""
    report = next((each for each in _documents(text) if "benchmarks" in each and "context" in each), None)
    if report is None:
        raise NoReport("it is not the JSON of Google Benchmark")
    repetitions: Benchmarks = {}
    aggregates: dict[str, dict[str, float]] = {}
    for each in _read(report, _GoogleReport).benchmarks:
        run, aggregate = each.run_name or each.name, each.aggregate_name
        if not each.run_type and (found := _AGGREGATE.fullmatch(each.name)):
            run, aggregate = found["run"], found["aggregate"]
        time_ns = math.nan if each.real_time is None else each.real_time * NS.get(each.time_unit, math.nan)
        if each.run_type == "aggregate" or aggregate:
            aggregates.setdefault(run, {})[aggregate] = time_ns
        elif each.error_occurred or each.skipped:
            repetitions[run] = f"reports an error: {shortened(each.error_message or each.skip_message)}"
        elif each.time_unit not in NS:
            repetitions[run] = _not_a_time(each.time_unit)
        elif not isinstance(own := repetitions.setdefault(run, []), str):
            own.append(time_ns)
    for run, own_aggregates in aggregates.items():
        middle = own_aggregates.get("median", own_aggregates.get("mean"))
        repetitions.setdefault(run, [] if middle is None else [middle])
    return repetitions


class _PyperfMetadata(msgspec.Struct):
    name: str = ""
    unit: str = ""


class _PyperfRun(msgspec.Struct):
    values: tuple[float, ...] = ()  # none of runs that calibrated


class _PyperfBenchmark(msgspec.Struct):
    runs: tuple[_PyperfRun, ...]
    metadata: _PyperfMetadata = msgspec.field(default_factory=_PyperfMetadata)


class _PyperfReport(msgspec.Struct):
    benchmarks: tuple[_PyperfBenchmark, ...]
    metadata: _PyperfMetadata = msgspec.field(default_factory=_PyperfMetadata)  # what all benchmarks have in common


def _pyperf(text: str) -> Benchmarks:
    report = next((each for each in _documents(text) if "benchmarks" in each and "context" not in each), None)
    if report is None:
        raise NoReport("it is not the JSON of pyperf")
    whole: _PyperfReport = _read(report, _PyperfReport)
    found: Benchmarks = {}
    for each in whole.benchmarks:
        unit = each.metadata.unit or whole.metadata.unit or "second"
        values = [value * NS["s"] for run in each.runs for value in run.values]
        found[each.metadata.name or whole.metadata.name] = values if unit == "second" else _not_a_time(unit)
    return found


class _HyperfineResult(msgspec.Struct):
    command: str
    times: tuple[float, ...] = ()


class _HyperfineReport(msgspec.Struct):
    results: tuple[_HyperfineResult, ...]


def _hyperfine(text: str) -> Benchmarks:
    report = next((each for each in _documents(text) if "results" in each), None)
    if report is None:
        raise NoReport("it is not the JSON of hyperfine")
    results = _read(report, _HyperfineReport).results
    return {each.command: [seconds * NS["s"] for seconds in each.times] for each in results}


class _CriterionEstimate(msgspec.Struct):
    estimate: float
    unit: str


class _CriterionMessage(msgspec.Struct):
    id: str
    typical: _CriterionEstimate


class _CriterionPoint(msgspec.Struct):
    point_estimate: float


class _CriterionName(msgspec.Struct):
    full_id: str


class _CriterionFile(msgspec.Struct):
    mean: _CriterionPoint
    slope: _CriterionPoint | None = None


_CRITERION_TIME = re.compile(
    r"^(?P<name>.*?)\s*\btime: +\[[\d.]+ \S+ (?P<time>[\d.]+) (?P<unit>\S+) [\d.]+ \S+\]", re.MULTILINE
)


def _criterion(text: str) -> Benchmarks:
    """Read what criterion shows in the middle: the slope over numbers of iterations, or else the mean.

    Estimates of a file belong to the benchmark that is named before them, if one is, and are in nanoseconds.
    """
    found: Benchmarks = {}
    name = ""
    for document in _documents(text):
        if document.get("reason") == "benchmark-complete":
            message: _CriterionMessage = _read(document, _CriterionMessage)
            unit = message.typical.unit
            found[message.id] = [message.typical.estimate * NS[unit]] if unit in NS else _not_a_time(unit)
        elif "mean" in document and "median" in document:
            if "std_dev" not in document:
                raise BadReport("its estimates are shares of change, not times; name new/estimates.json")
            file: _CriterionFile = _read(document, _CriterionFile)
            found[name], name = [(file.slope or file.mean).point_estimate], ""
        elif "full_id" in document:
            named: _CriterionName = _read(document, _CriterionName)
            name = named.full_id
    if found:
        return found
    for line in _CRITERION_TIME.finditer(text):
        above = text[: line.start()].rstrip("\n").rpartition("\n")[2]
        unit, time = line["unit"], line["time"]
        found[line["name"].strip() or above.strip()] = [float(time) * NS[unit]] if unit in NS else _not_a_time(unit)
    if not found:
        raise NoReport("it is not a report of criterion")
    return found


class _NvbenchValue(msgspec.Struct):
    name: str
    value: str | float


class _NvbenchSummary(msgspec.Struct):
    tag: str
    data: tuple[_NvbenchValue, ...] = ()


class _NvbenchState(msgspec.Struct):
    axis_values: tuple[_NvbenchValue, ...] | None = ()
    summaries: tuple[_NvbenchSummary, ...] | None = ()
    is_skipped: bool = False
    skip_reason: str = ""


class _NvbenchBenchmark(msgspec.Struct):
    name: str
    states: tuple[_NvbenchState, ...] | None = ()


class _NvbenchReport(msgspec.Struct):
    benchmarks: tuple[_NvbenchBenchmark, ...]


_NVBENCH_TIMES = ("nv/cold/time/gpu/mean", "nv/cpu_only/time/cpu/mean")


def _nvbench(text: str) -> Benchmarks:
    """Read the mean GPU time of single calls, or, without a GPU, the CPU time. Numbers are texts there."""
    report = next((each for each in _documents(text) if "benchmarks" in each and "devices" in each), None)
    if report is None:
        raise NoReport("it is not the JSON of nvbench")
    found: Benchmarks = {}
    for each in _read(report, _NvbenchReport).benchmarks:
        for state in each.states or ():
            axes = " ".join(f"{axis.name}={axis.value}" for axis in state.axis_values or ())
            values = {of.tag: {data.name: data.value for data in of.data} for of in state.summaries or ()}
            means = [values[tag]["value"] for tag in _NVBENCH_TIMES if "value" in values.get(tag, {})]
            name = f"{each.name} [{axes}]" if axes else each.name
            if state.is_skipped or not means:
                found[name] = f"was skipped: {shortened(state.skip_reason)}" if state.is_skipped else []
            else:
                found[name] = [_seconds(means[0]) * NS["s"]]
    return found


def _seconds(value: str | float) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


_NUMBER = re.compile(
    r"(?<![\w.,+-])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*"
    rf"(?P<unit>{'|'.join(sorted(NS, key=len, reverse=True))})\b"
)


def _last_number(text: str, name: str) -> list[float]:
    """Read the last number with a unit of time, of the lines that hold the name."""
    lines = [line for line in text.splitlines() if name in line]
    found = [match for line in lines for match in _NUMBER.finditer(line)]
    if not found:
        where = f"no line with {name!r}" if name and not lines else "no number with a unit of time"
        raise NoReport(f"it has {where}")
    return [float(found[-1]["number"].replace(",", "")) * NS[found[-1]["unit"]]]


_READERS: Mapping[ReportFormat, Callable[[str], Benchmarks]] = {
    "google-benchmark": _google_benchmark,
    "pyperf": _pyperf,
    "hyperfine": _hyperfine,
    "criterion": _criterion,
    "nvbench": _nvbench,
}
