"""The tables of collective operations that every format shows, and the text of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairlap import quantity_text
from fairlap.printable import joined_lines
from fairlap.race.collectives import MEMORY
from fairlap.results.collectives import REFERENCE, CollectiveFit, CollectiveRow, CollectivesResult
from fairlap.results.row import Estimate
from fairlap.scenarios.ranks_messages import COPY

HEADS = ("size", "contestant", "time", "bandwidth", f"× {REFERENCE}")
FIT_HEADS = ("operation", "contestant", "latency", "bandwidth", "largest miss")
FIT = "Fitted: time = latency + bytes / bandwidth"
NAMES = {"all_reduce": "all-reduce", "all_gather": "all-gather", "broadcast": "broadcast", COPY: "copy in memory"}
_FEWEST_BLOCKS = 6  # of an interval
_DECIMAL = ((1000**3, "GB"), (1000**2, "MB"), (1000, "KB"), (1, "B"))
_BINARY = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B"))

Table = list[list[str]]


def setting(result: CollectivesResult) -> str:
    threads = quantity_text.count(result.threads, "thread")
    blocks = quantity_text.count(result.blocks, "block")
    return (
        f"{quantity_text.count(result.ranks, 'rank')} of {threads} on one machine, {blocks}. A size is what each rank "
        "gives; a time is that of the slowest rank."
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


def operations_of(result: CollectivesResult) -> list[str]:
    return list(dict.fromkeys(row.operation for row in result.rows))


def size_texts(sizes: Iterable[int]) -> dict[int, str]:
    """Write sizes exactly, and all in one system.

    The systems are thousands as in ``4.5 KB``, or powers of 1024 as in ``4 KiB``, whichever is shorter for all of them
    together.
    """
    kept = list(dict.fromkeys(sizes))
    found = [{size: _size_text(size, units) for size in kept} for units in (_DECIMAL, _BINARY)]
    return min(found, key=lambda texts: sum(map(len, texts.values())))


def _size_text(size: int, units: Sequence[tuple[int, str]]) -> str:
    scale, unit = next((each for each in units if size >= each[0]), units[-1])
    return f"{size / scale:.12g} {unit}"


def table_of(result: CollectivesResult, operation: str) -> Table:
    """With its heads; without the column of ratios where there are none."""
    sizes = size_texts(row.bytes for row in result.rows)
    cells = [list(HEADS), *(_cells(row, sizes) for row in result.rows if row.operation == operation)]
    return cells if any(row[-1] != "-" for row in cells[1:]) else [row[:-1] for row in cells]


def fit_table(result: CollectivesResult) -> Table:
    """With its heads, of all operations; empty without any fit."""
    return [list(FIT_HEADS), *map(_fit_cells, result.fits)] if result.fits else []


def _cells(row: CollectiveRow, sizes: dict[int, str]) -> list[str]:
    if row.time_ns is None:
        return [sizes[row.bytes], row.contestant, "-", "-", "-"]
    return [
        sizes[row.bytes],
        f"{row.contestant} {row.version}".rstrip(),
        quantity_text.duration_interval(*_bounds(row.time_ns)),
        _bandwidth(row.bytes_per_s),
        "-" if row.times_mpi is None else quantity_text.ratio_interval(*_bounds(row.times_mpi)),
    ]


def _fit_cells(fit: CollectiveFit) -> list[str]:
    """Format a fit's figures, which times that are far from the model lack."""
    names, miss = [NAMES[fit.operation], fit.contestant], quantity_text.share(fit.largest_miss)
    if not fit.holds:
        return [*names, "-", "-", f"{miss}: the model does not hold"]
    latency = "-" if fit.latency_ns is None else quantity_text.duration_interval(*_bounds(fit.latency_ns))
    return [*names, latency, _bandwidth(fit.bytes_per_s), miss]


def reasons(result: CollectivesResult) -> list[str]:
    """Why figures are absent, each once."""
    found = [f"{row.contestant}, {NAMES[row.operation]}: {row.absent}" for row in result.rows if row.absent]
    return list(dict.fromkeys([*found, *(f"{name}: {why}" for name, why in result.failures.items())]))


def exchanges(result: CollectivesResult) -> list[str]:
    return [f"{name}: {how}" for name, how in result.exchange.items() if name != MEMORY]


def text_of(result: CollectivesResult) -> str:
    return joined_lines(_lines(result))


def _lines(result: CollectivesResult) -> Iterator[str]:
    yield about(result)
    for operation in operations_of(result):
        yield from ("", NAMES[operation], *_aligned(table_of(result, operation)))
    if fits := fit_table(result):
        yield from ("", FIT, *_aligned(fits))
    notes = [*exchanges(result), *reasons(result)]
    if notes:
        yield from ("", *notes)


def _aligned(rows: Table) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _bandwidth(found: Estimate | None) -> str:
    if found is None:
        return "-"
    scale, unit = next((each for each in _DECIMAL if found.value >= each[0]), _DECIMAL[-1])
    value, low, high = (None if each is None else quantity_text.number(each / scale) for each in _bounds(found))
    return f"{value} {unit}/s" if low is None else f"{value} {unit}/s [{low}, {high}]"


def _bounds(found: Estimate) -> tuple[float, float | None, float | None]:
    return found.value, found.low, found.high
