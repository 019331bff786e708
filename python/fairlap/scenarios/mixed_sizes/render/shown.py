"""A race over a mix of sizes in words: time by size, stalls, and after how many calls compiling has paid off."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.render.scenario_side import RenderSide, Words, require_command
from fairlap.results.row import Row
from fairlap.scenarios.mixed_sizes.results.break_even import BreakEven, break_evens

_MOST_SHOWN = 8  # sizes; the files have all


class MixShown(RenderSide):
    def words(self, plan: Plan) -> Words:
        found = {work.mix for work in plan.works}
        require_command(len(found) == 1)
        return [word for mix in found if mix is not None for word in ("--shapes-from", mix.file)]

    def lines(self, row: Row) -> list[str]:
        return [*_by_size(row), *_stalls(row)]

    def notes(self, rows: Sequence[Row]) -> list[str]:
        notes = [_break_even_text(each) for each in break_evens(rows)]
        return [_ABOUT, *notes] if any(row.mix_by_size for row in rows) else []


_ABOUT = (
    "Ranked by the median time of a call at each size, weighted by how often it occurs. Memory, energy and percentiles "
    "are those of the size that most calls have."
)


def _by_size(row: Row) -> list[str]:
    """At most eight of them, from the smallest to the largest."""
    found = row.mix_by_size
    if not found:
        return []
    count = min(len(found), _MOST_SHOWN)
    places = sorted({round(place * (len(found) - 1) / max(count - 1, 1)) for place in range(count)})
    times = ", ".join(f"{found[at].size} {quantity_text.duration(found[at].call_ns.value)}" for at in places)
    some = f" ({count} of {len(found)} sizes)" if count < len(found) else ""
    return [f"by size: {times}{some}"]


def _stalls(row: Row) -> list[str]:
    stalls, share = row.mix_stalls_s, row.mix_stall_share
    if stalls is None or share is None:
        return []
    sizes = sum(each.first_s is not None for each in row.mix_by_size)
    graphs = "" if row.mix_compiled is None else f", {quantity_text.count(int(row.mix_compiled), 'graph')} in all"
    of_time = f"{quantity_text.share(share.value)} of the time of their first calls"
    return [
        f"{quantity_text.count(sizes, 'further size')} first seen{graphs}: stalls of "
        f"{quantity_text.seconds(stalls.value)}, {of_time}"
    ]


def _break_even_text(found: BreakEven) -> str:
    blocks = quantity_text.count(found.blocks, "block")
    between = f" ({blocks}: no interval)"
    if found.low is not None and found.high is not None:
        between = f" ({_calls(found.low)} to {_calls(found.high)}, {blocks})"
    empty = ""
    if found.with_empty_caches is not None:
        empty = f"; {_calls(found.with_empty_caches)} where its compiler's caches are empty"
    return f"{found.later} has caught up with {found.sooner} after {_calls(found.calls)} calls{between}{empty}."


def _calls(count: float) -> str:
    return quantity_text.number(count, 3)
