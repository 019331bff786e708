"""What a pipeline reports of the copies that it made to a GPU, as a message and a process result hold it."""

from __future__ import annotations

import msgspec


class TimedCopies(msgspec.Struct, frozen=True):
    """Copies that events timed, and how much of their time was behind the device's work on other batches."""

    copies: int = 0
    copied_ns: float = 0.0
    hidden_ns: float = 0.0
    absent: str = ""  # why none were timed

    @property
    def hidden_share(self) -> float | None:
        return self.hidden_ns / self.copied_ns if self.copied_ns else None
