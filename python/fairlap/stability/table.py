"""The table as data: a row for each contestant and work."""

from __future__ import annotations

import msgspec

from fairlap.printed_document import PrintedDocument
from fairlap.stability.repeated import Repeated


class StabilityRow(msgspec.Struct, frozen=True, kw_only=True):
    """Of one process with one thread, but for what is compared with others.

    Without an answer there is only the reason, and its code.
    """

    contestant: str
    version: str = ""
    work: str  # its label
    model: str
    precision: str
    batch: int
    relative_error: float | None = None  # against the reference; None also where the answer is not finite
    digits_kept: float | None = None
    digits_possible: float | None = None  # of operations on which digits are lost
    time_ns: float | None = None  # the median call
    again: Repeated = Repeated()  # in the same process, after a call on other inputs
    process: Repeated = Repeated()  # in another process
    threads: Repeated = Repeated()  # with two threads
    batched: Repeated = Repeated()  # the first item alone, and in the batch
    absent: str = ""
    code: str = ""

    @property
    def checks(self) -> tuple[Repeated, ...]:
        return self.again, self.process, self.threads, self.batched


class StabilityTable(PrintedDocument, frozen=True, tag="fairlap.stability/1"):
    rows: tuple[StabilityRow, ...]
    seed: int  # draws weights and inputs
    threads: int  # of the second count of threads; 1 where there was no second one
    device: str = "cpu"
