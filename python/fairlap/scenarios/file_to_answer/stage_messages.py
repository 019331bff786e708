"""The messages of a race from file to answer, and what a process showed of it.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from fairlap.request.fields.data.stages import MODEL, Stages
from fairlap.scenarios.asking import MOST_RAW_BYTES, Ask, Reply
from fairlap.scenarios.calls.latency_messages import BYTES_PER_SAMPLE

INPUTS, OUTPUTS = "inputs/", "outputs/"
"""What precedes the arrays of one answer in a file, besides those of the final answer."""


class ItemSeen(Reply, frozen=True, tag="item_seen"):
    seconds: float  # from file to answer
    model_s: float


class SeeItem(Ask[ItemSeen], frozen=True, tag="see_item"):
    """Answer one file, and write the model's inputs, its outputs and the final answer."""

    served_by: ClassVar[str] = "fairlap.scenarios.file_to_answer.answers_of_files:see"

    stages: Stages
    item: int  # its place among the files
    path: str

    @property
    def text(self) -> str:
        return f"the answer to {self.stages.names[self.item]}"


class ItemsMeasured(Reply, frozen=True, tag="items_measured"):
    """The times follow, in nanoseconds: all of an answer, then each of its stages; then those of the next answer.

    Of overlapped answers there are none but ``between_s``.
    """

    elapsed_s: float
    bytes: int
    between_s: float = 0.0  # from the end of the first answer to the end of the last

    def require_consistent(self) -> None:
        """Raise msgspec.ValidationError for a number of bytes that holds no times."""
        if self.bytes % BYTES_PER_SAMPLE or not 0 <= self.bytes <= MOST_RAW_BYTES:
            raise msgspec.ValidationError(f"{self.bytes} bytes of times")


class MeasureItems(Ask[ItemsMeasured], frozen=True, tag="measure_items"):
    """Answer these files, one after the other or overlapped, and write the last final answer."""

    served_by: ClassVar[str] = "fairlap.scenarios.file_to_answer.answers_of_files:measure"

    stages: Stages
    items: tuple[int, ...]
    overlapped: bool  # the stages before the next file run on a second thread
    path: str

    @property
    def columns(self) -> int:
        return 1 + len(self.stages.labels)

    def most_raw_bytes(self, after_s: float) -> int:
        return 0 if self.overlapped else BYTES_PER_SAMPLE * self.columns * len(self.items)


class StageFound(msgspec.Struct, frozen=True):
    """One stage in one process: its median time of each file, averaged over the files."""

    stage: str
    mean_ns: float


class AnswersFound(msgspec.Struct, frozen=True):
    """Of one process."""

    answer_ns: float | None = None  # from file to answer: the median of each file, averaged over the files
    stages: tuple[StageFound, ...] = ()
    answers: int = 0  # that were timed
    overlapped_per_s: float | None = None

    @property
    def model_ns(self) -> float | None:
        return next((each.mean_ns for each in self.stages if each.stage == MODEL), None)

    @property
    def per_s(self) -> float | None:
        """Files answered in a second, one after the other."""
        return None if not self.answer_ns else 1e9 / self.answer_ns
