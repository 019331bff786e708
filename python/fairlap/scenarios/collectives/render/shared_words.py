"""What the tables and the chart of collective operations both say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlap import quantity_text
from fairlap.scenarios.collectives.collective_messages import COPY
from fairlap.scenarios.collectives.results.collectives_result import CollectivesResult

NAMES = {"all_reduce": "all-reduce", "all_gather": "all-gather", "broadcast": "broadcast", COPY: "copy in memory"}
DECIMAL = ((1000**3, "GB"), (1000**2, "MB"), (1000, "KB"), (1, "B"))
_BINARY = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B"))


def setting(result: CollectivesResult) -> str:
    threads = quantity_text.count(result.threads, "thread")
    blocks = quantity_text.count(result.blocks, "block")
    return (
        f"{quantity_text.count(result.ranks, 'rank')} of {threads} on one machine, {blocks}. A size is what each rank "
        "gives; a time is that of the slowest rank."
    )


def operations_of(result: CollectivesResult) -> list[str]:
    return list(dict.fromkeys(row.operation for row in result.rows))


def size_texts(sizes: Iterable[int]) -> dict[int, str]:
    """Write sizes exactly, and all in one system.

    The systems are thousands as in ``4.5 KB``, or powers of 1024 as in ``4 KiB``, whichever is shorter for all of them
    together.
    """
    kept = list(dict.fromkeys(sizes))
    found = [{size: _size_text(size, units) for size in kept} for units in (DECIMAL, _BINARY)]
    return min(found, key=lambda texts: sum(map(len, texts.values())))


def _size_text(size: int, units: Sequence[tuple[int, str]]) -> str:
    scale, unit = next((each for each in units if size >= each[0]), units[-1])
    return f"{size / scale:.12g} {unit}"


def how_to_read(result: CollectivesResult) -> str:
    points = "Points are measured medians"
    if any(row.time_ns is not None and row.time_ns.low is not None for row in result.rows):
        points += " with 95 % intervals over blocks"
    if not any(fit.holds for fit in result.fits):
        return f"{points}. Both axes are logarithmic."
    return f"{points}; lines are latency + bytes / bandwidth, fitted to them. Both axes are logarithmic."
