"""The tables of collective operations that every format shows, and the text of the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlap import quantity_text
from fairlap.race.collectives import MEMORY
from fairlap.results.collectives import CollectiveFit, CollectiveRow, CollectivesResult
from fairlap.results.row import Estimate
from fairlap.scenarios.ranks_messages import COPY

HEADS = ("size", "contestant", "time", "bandwidth", "× mpi")
FIT_HEADS = ("contestant", "latency", "bandwidth", "largest miss")
_UNITS = {1000: "KB", 1000**2: "MB", 1000**3: "GB"}
NAMES = {"all_reduce": "all-reduce", "all_gather": "all-gather", "broadcast": "broadcast", COPY: "copy in memory"}


def about(result: CollectivesResult) -> str:
    threads = quantity_text.count(result.threads, "thread")
    blocks = quantity_text.count(result.blocks, "block")
    return (
        f"{quantity_text.count(result.ranks, 'rank')} of {threads} on one machine, {blocks}. A size is what each rank "
        "gives; a time is that of the slowest rank. Brackets are 95 % intervals over blocks, which take six."
    )


def operations_of(result: CollectivesResult) -> list[str]:
    return list(dict.fromkeys(row.operation for row in result.rows))


def size_text(size: int) -> str:
    """As it was given: ``4 KB`` is 4000 bytes, ``4 KiB`` 4096."""
    if size % 1000:
        return quantity_text.size(size)
    unit = next(unit for unit in (1000**3, 1000**2, 1000) if size >= unit)
    return f"{size / unit:g} {_UNITS[unit]}"


def cells(row: CollectiveRow) -> list[str]:
    if row.time_ns is None:
        return [size_text(row.bytes), row.contestant, "-", "-", "-"]
    return [
        size_text(row.bytes),
        f"{row.contestant} {row.version}".rstrip(),
        duration(row.time_ns),
        bandwidth(row.bytes_per_s),
        "-" if row.times_mpi is None else quantity_text.ratio_interval(*_bounds(row.times_mpi)),
    ]


def fit_cells(fit: CollectiveFit) -> list[str]:
    """Times that are far from the model have neither of its figures."""
    if not fit.holds:
        return [fit.contestant, "-", "-", f"{fit.largest_miss:.0%}: the model does not hold"]
    latency = "-" if fit.latency_ns is None else duration(fit.latency_ns)
    return [fit.contestant, latency, bandwidth(fit.bytes_per_s), f"{fit.largest_miss:.0%}"]


def reasons(result: CollectivesResult) -> list[str]:
    """Why figures are absent, each once."""
    found = [f"{row.contestant}, {NAMES[row.operation]}: {row.absent}" for row in result.rows if row.absent]
    return list(dict.fromkeys([*found, *(f"{name}: {why}" for name, why in result.failures.items())]))


def exchanges(result: CollectivesResult) -> list[str]:
    return [f"{name}: {how}" for name, how in result.exchange.items() if name != MEMORY]


def text_of(result: CollectivesResult) -> str:
    return "\n".join(_lines(result))


def _lines(result: CollectivesResult) -> Iterator[str]:
    yield about(result)
    for operation in operations_of(result):
        rows = [cells(row) for row in result.rows if row.operation == operation]
        yield from ("", NAMES[operation], *_aligned([HEADS, *rows]))
        fits = [fit_cells(fit) for fit in result.fits if fit.operation == operation]
        if fits:
            yield from ("time = latency + bytes / bandwidth", *_aligned([FIT_HEADS, *fits]))
    notes = [*exchanges(result), *reasons(result)]
    if notes:
        yield from ("", *notes)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def duration(found: Estimate) -> str:
    return quantity_text.duration_interval(*_bounds(found))


def bandwidth(found: Estimate | None) -> str:
    if found is None:
        return "-"
    value, low, high = (None if each is None else f"{each / 1e9:.3g}" for each in _bounds(found))
    return f"{value} GB/s" if low is None else f"{value} GB/s [{low}, {high}]"


def _bounds(found: Estimate) -> tuple[float, float | None, float | None]:
    return found.value, found.low, found.high
