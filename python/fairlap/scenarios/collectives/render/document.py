"""Collective operations as a document: times by size of each operation, and what is fitted to them."""

from __future__ import annotations

from functools import partial

from fairlap import quantity_text
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.request.names import with_version
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.collectives.race.collectives_run import MEMORY
from fairlap.scenarios.collectives.render.chart import chart_of
from fairlap.scenarios.collectives.render.shared_words import (
    DECIMAL,
    NAMES,
    how_to_read,
    operations_of,
    setting,
    size_texts,
)
from fairlap.scenarios.collectives.results.collectives_result import (
    REFERENCE,
    CollectiveFit,
    CollectiveRow,
    CollectivesResult,
)

_HEADS = ("size", "contestant", "time", "bandwidth", f"× {REFERENCE}")
_FIT_HEADS = ("operation", "contestant", "latency", "bandwidth", "largest miss")
_FEWEST_BLOCKS = 6  # of an interval
_ESTIMATES = ("time_ns", "bytes_per_s", "times_mpi")


def document_of(result: CollectivesResult) -> Document:
    return Document(
        title="Collective operations",
        facts=(about(result),),
        sections=[
            _chart(result),
            *(_section(result, each) for each in operations_of(result)),
            _fits(result),
            Section("Notes", notes=[*_exchanges(result), *_reasons(result)]),
        ],
        data=result,
        records=_records(result),
        draw=partial(chart_of, result, alone=True),
    )


def about(result: CollectivesResult) -> str:
    """Describe the setting, and what the brackets are where there are some."""
    bounded = [row.time_ns.low is not None for row in result.rows if row.time_ns is not None]
    if result.blocks < _FEWEST_BLOCKS:
        return f"{setting(result)} Intervals take six blocks."
    if not any(bounded):
        return setting(result)
    others = "" if all(bounded) else "; figures without them fall into separate groups of blocks"
    return f"{setting(result)} Brackets are 95 % intervals over blocks{others}."


def _section(result: CollectivesResult, operation: str) -> Section:
    sizes = size_texts(row.bytes for row in result.rows)
    rows = [_cells(row, sizes) for row in result.rows if row.operation == operation]
    name = NAMES[operation]
    return Section(name, [Table(f"Times of {name}", _HEADS, rows).without_empty_columns(after=4)])


def _fits(result: CollectivesResult) -> Section:
    shown = Table("Latency and bandwidth", _FIT_HEADS, [_fit_cells(fit) for fit in result.fits])
    return Section("Fitted: time = latency + bytes / bandwidth", [shown] if result.fits else [])


def _chart(result: CollectivesResult) -> Section:
    described = "Time by size of each collective operation"
    picture = Picture(described, partial(chart_of, result, alone=False), how_to_read(result))
    return Section("Time by size", picture=picture if any(row.time_ns is not None for row in result.rows) else None)


def _records(result: CollectivesResult) -> Records:
    """Take the lines of the tables; JSON has the fitted latencies and bandwidths too."""
    names = ("contestant", "version", "operation", "ranks", "threads", "bytes", *_ESTIMATES, "absent")
    rows = [
        [
            *(row.contestant, row.version, row.operation, result.ranks, result.threads, row.bytes),
            *(row.time_ns, row.bytes_per_s, row.times_mpi, row.absent),
        ]
        for row in result.rows
    ]
    return Records(names, rows, _ESTIMATES)


def _cells(row: CollectiveRow, sizes: dict[int, str]) -> list[str]:
    if row.time_ns is None:
        return [sizes[row.bytes], row.contestant, "", "", ""]
    return [
        sizes[row.bytes],
        with_version(row.contestant, row.version),
        quantity_text.duration_interval(*_bounds(row.time_ns)),
        _bandwidth(row.bytes_per_s),
        "" if row.times_mpi is None else quantity_text.ratio_interval(*_bounds(row.times_mpi)),
    ]


def _fit_cells(fit: CollectiveFit) -> list[str]:
    """Format a fit's figures, which times that are far from the model lack."""
    names, miss = [NAMES[fit.operation], fit.contestant], quantity_text.share(fit.largest_miss)
    if not fit.holds:
        return [*names, "", "", f"{miss}: the model does not hold"]
    latency = "" if fit.latency_ns is None else quantity_text.duration_interval(*_bounds(fit.latency_ns))
    return [*names, latency, _bandwidth(fit.bytes_per_s), miss]


def _reasons(result: CollectivesResult) -> list[str]:
    """Why figures are absent, each once."""
    found = [f"{row.contestant}, {NAMES[row.operation]}: {row.absent}" for row in result.rows if row.absent]
    return list(dict.fromkeys([*found, *(f"{name}: {why}" for name, why in result.failures.items())]))


def _exchanges(result: CollectivesResult) -> list[str]:
    return [f"{name}: {how}" for name, how in result.exchange.items() if name != MEMORY]


def _bandwidth(found: Estimate | None) -> str:
    if found is None:
        return ""
    scale, unit = next((each for each in DECIMAL if found.value >= each[0]), DECIMAL[-1])
    value, low, high = (None if each is None else quantity_text.number(each / scale) for each in _bounds(found))
    return f"{value} {unit}/s" if low is None else f"{value} {unit}/s [{low}, {high}]"


def _bounds(found: Estimate) -> tuple[float, float | None, float | None]:
    return found.value, found.low, found.high
