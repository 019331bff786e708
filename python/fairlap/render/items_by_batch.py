"""The time of one item, where works differ in their batch alone: that of each, and at which batch it is least.

It is the median time of a call, and its interval, divided by the batch. Different works do not share blocks, so their
times have no verdict: batches whose intervals overlap cannot be distinguished.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlap import quantity_text
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row
from fairlap.scenarios.contract import times_of_a_batch
from fairlap.verdict import listed

NOTE = "Time per item is the median time divided by the batch. Batches are not compared with each other."


def time_per_item_ns(row: Row) -> Estimate | None:
    """None where it has several modes or did not do its work, or is ranked by anything but the time of calls."""
    if row.judged is None or row.modes or row.outcome != "finished":
        return None
    if row.judged_by not in times_of_a_batch():
        return None
    low, high = (None if end is None else end / row.batch for end in (row.judged.low, row.judged.high))
    return Estimate(row.judged.value / row.batch, low, high)


def differ_in_batch_alone(rows: Sequence[Row]) -> bool:
    """Whether rows, under whatever conditions, are of one work at several batches, with a time of an item."""
    return (
        len({_all_but_batch(row) for row in rows}) == 1
        and len({row.batch for row in rows}) > 1
        and any(map(time_per_item_ns, rows))
    )


def item_texts(rows: Sequence[Row]) -> list[str]:
    """``134.1 µs`` for each row, in one unit where one suits them all; empty where there is none."""
    found = [time_per_item_ns(row) for row in rows]
    unit_ns = quantity_text.common_unit_ns(each.value for each in found if each is not None)
    return [
        "" if each is None else quantity_text.duration_and_bounds(each.value, None, None, unit_ns=unit_ns)[0]
        for each in found
    ]


def noted_least_times(rows: Sequence[Row]) -> list[str]:
    """Write these lines and how to read them; empty where there are none."""
    lines = least_time_lines(rows)
    return [*lines, NOTE] if lines else []


def least_time_lines(rows: Sequence[Row], shown: Callable[[str], str] = str) -> list[str]:
    """Name the batch of the least time per item for each contestant; ``NOTE`` belongs next to these lines.

    Empty unless rows differ in their batch alone. ``shown`` writes a contestant's name.
    """
    if not differ_in_batch_alone(rows):
        return []
    several = len({row.conditions for row in rows}) > 1
    groups: dict[tuple[str, str], dict[int, Estimate | None]] = {}
    for row in rows:
        groups.setdefault((row.contestant, row.conditions), {})[row.batch] = time_per_item_ns(row)
    return [
        f"{shown(contestant)}{f', {conditions}' if several else ''}: {_least(by_batch)}"
        for (contestant, conditions), by_batch in groups.items()
        if sum(map(bool, by_batch.values())) > 1
    ]


def _all_but_batch(row: Row) -> tuple[object, ...]:
    work = (row.run, row.workload, row.mode, *row.ranked_precisions)
    return (*work, row.threads, row.device, row.data, row.train_on, row.scale)


def _least(by_batch: dict[int, Estimate | None]) -> str:
    known = {size: found for size, found in by_batch.items() if found is not None}
    batch, least = min(known.items(), key=lambda each: each[1].value)
    rate = f"{quantity_text.number(1e9 / least.value, 4)} items/s"
    text = f"least time per item at batch {batch:,}, {quantity_text.duration(least.value)} ({rate})"
    left_out = [size for size in by_batch if size not in known]
    without = f"; no single time at batch {_sizes(left_out)}" if left_out else ""
    if least.high is None:
        return f"{text}; it has no interval, so no other batch is distinguished from it{without}"
    others = {size: found for size, found in known.items() if size != batch}
    close = [size for size, found in others.items() if found.low is None or found.low <= least.high]
    if not close:
        return f"{text}; no other interval overlaps{without}"
    why = "overlap" if all(others[size].low is not None for size in close) else "overlap or are missing"
    return f"{text}; not distinguished from batch {_sizes(close)}: intervals {why}{without}"


def _sizes(batches: Sequence[int]) -> str:
    return listed([f"{each:,}" for each in sorted(batches)])
