"""The columns of answering files."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fairlap.results.column_definitions.about import ScenarioColumns, about
from fairlap.results.column_definitions.estimate import Estimate

_file = partial(about, group="from file to answer")


class StageTime(msgspec.Struct, frozen=True):
    """Of one stage from file to answer: its median time of each file, averaged over the files."""

    stage: str  # the name of its function, or "model"
    stage_ns: Estimate
    share: float  # of the time from file to answer


class FileRow(ScenarioColumns, frozen=True, kw_only=True):
    file_items: Annotated[str, _file("The files that were answered; empty where calls take arrays.")]
    file_model_ns: Annotated[
        Estimate | None,
        _file("Time of the model in an answer to a file, with handing over inputs and reading outputs."),
    ]
    file_model_share: Annotated[Estimate | None, _file("How much of the time from file to answer that is.")]
    file_answers_per_s: Annotated[Estimate | None, _file("Files answered per second, one after the other.")]
    file_overlapped_per_s: Annotated[
        Estimate | None,
        _file("The same where the stages before the model work on the next file meanwhile, on a second thread."),
    ]
    file_stages: Annotated[list[StageTime], _file("Time by stage, in their order.")]
