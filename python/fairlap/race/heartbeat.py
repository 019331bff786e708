"""A line now and then while nothing else is printed, so that a log shows that a long wait goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

EVERY_S = 30.0


class Heartbeat:
    """Calls ``beat`` whenever nothing was printed for a while. Its thread sleeps in between: contestants are timed."""

    def __init__(self, beat: Callable[[], None], every_s: float = EVERY_S) -> None:
        self._beat, self._every_s = beat, every_s
        self._printed_s = time.monotonic()
        self._over = Event()
        self._thread = Thread(target=self._run, name="fairlap-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self.printed()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def printed(self) -> None:
        """Something was printed just now."""
        self._printed_s = time.monotonic()

    def _run(self) -> None:
        while not self._over.wait(max(self._printed_s + self._every_s - time.monotonic(), 0.01)):
            if time.monotonic() - self._printed_s >= self._every_s:
                self.printed()
                self._beat()
