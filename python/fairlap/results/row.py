"""The row: all that is known of one contestant on one work under one kind of conditions.

CSV headers, the JSON schema, the store's view, the data dictionary and the report's columns are made from this class.
A unit is the end of a name. A value that is absent is None, never 0, and ``absent`` gives the reason.

The groups of fields are structs in ``fields``. A struct extends one other with fields at most, so each group extends
the one before it, in the order of the columns.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fairlap.engine.measurement import Notice
from fairlap.printed_document import PrintedDocument
from fairlap.results.column_definitions.about import Gauge, about
from fairlap.results.column_definitions.estimate import Estimate, time_ns
from fairlap.results.column_definitions.scenarios import Scenarios

_verdict = partial(about, group="verdict")
_warnings = partial(about, group="warnings")


class Row(Scenarios, frozen=True, kw_only=True):
    baseline: Annotated[str | None, _verdict("The contestant that it is compared with.")]
    ratio: Annotated[
        Estimate | None,
        _verdict(
            "How many times as long it takes as the baseline, from the blocks they shared.",
            unit="times the baseline",
            gauge=Gauge("ratio", "", "Times as long as the baseline.", also=("baseline",)),
        ),
    ]
    verdict: Annotated[str | None, _verdict("Faster, slower, equivalent or inconclusive.")]
    detectable_effect: Annotated[float | None, _verdict("Minimum detectable effect at 80 % power.")]
    needed_blocks: Annotated[
        int | None,
        _verdict("Blocks, about, that would decide an inconclusive verdict: that would show the ratio as it is."),
    ]
    order_depends_on_data: Annotated[
        str | None, _verdict("Yes, if one data seed puts two contestants in another order than another; or no.")
    ]
    blocks_kept: Annotated[int, _verdict("Blocks that the verdict rests on.")]
    blocks_dropped: Annotated[int, _verdict("Blocks left out as noisy, blind to who ran.")]
    processes_repeated: Annotated[
        int, _verdict("How often a process was run again because temperature or power slowed the GPU down.")
    ]
    processes: Annotated[int, _verdict("Processes that began it.")]
    processes_finished: Annotated[int, _verdict("Those that did the whole work.")]

    warnings: Annotated[list[Notice], _warnings("What to know before trusting these values, each with its code.")]
    absent: Annotated[dict[str, str], _warnings("Why a value is absent, by the column's name.")]

    def __post_init__(self) -> None:
        missing = {name for name in self.__struct_fields__ if getattr(self, name) is None}
        if missing != set(self.absent):
            unsaid, needless = sorted(missing - set(self.absent)), sorted(set(self.absent) - missing)
            raise ValueError(f"absent without a reason: {unsaid}; a reason but not absent: {needless}")


def judged_time_ns(row: Row) -> Estimate | None:
    return None if row.judged is None else time_ns(row.judged, row.judged_unit)


class RowsDocument(PrintedDocument, frozen=True, tag="fairlap.rows/1"):
    rows: list[Row]
