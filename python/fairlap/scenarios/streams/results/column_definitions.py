"""The columns that servers which stream add to those of load."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fairlap.results.column_definitions.about import ScenarioColumns, about

_load = partial(about, group="load")


class LoadClient(msgspec.Struct, frozen=True):
    """One of several that shared the load of a server; times are medians over blocks."""

    name: str  # its host, with a number where there are several
    requests: int  # of all blocks
    core_share: float  # of a core that it used
    adds_to_first_token_ns: float | None  # itself, by its own null server; None where that is not known
    adds_to_answer_ns: float | None
    clock_offset_ns: float  # its clock less that of the process that raced, in the last block
    clock_uncertainty_ns: float  # the largest


class StreamRow(ScenarioColumns, frozen=True, kw_only=True):
    load_clients: Annotated[
        list[LoadClient],
        _load("The clients that shared the load of a server, where there were several: what each adds, and its clock."),
    ]
