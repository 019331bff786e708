"""Watch the resident memory of a worker and end the worker when it holds too much.

That is before the machine swaps or the kernel chooses which process to kill.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Sequence
from types import TracebackType

from fairlap import quantity_text
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.programs.process_tree import descendants
from fairlap.meters.memory import memory_of

_EVERY_S = 0.01
_AVAILABLE_EVERY = 5  # looks
_NOT_FILES = ("anonymous", "shared")
_KINDS = (*_NOT_FILES, "file")


class ResidentLimit:
    """Use it in ``with`` while the worker runs. ``exceeded`` is why the worker was ended; empty when it was not.

    ``most_bytes`` is the most that was seen. Pages of files count ``with_files``; the kernel drops them when memory is
    short.

    ``least_available_bytes`` is what the machine keeps free: other programs may take memory meanwhile.
    """

    def __init__(
        self,
        pid: int,
        limit_bytes: int,
        least_available_bytes: int = 0,
        *,
        every_s: float = _EVERY_S,
        with_files: bool = True,
    ) -> None:
        self.exceeded, self.most_bytes = "", 0
        self._pid, self._limit_bytes, self._least_available_bytes = pid, limit_bytes, least_available_bytes
        self._every_s = every_s
        self._kinds = _KINDS if with_files else _NOT_FILES
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fairlap-resident-limit", daemon=True)

    def __enter__(self) -> ResidentLimit:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        looks = 0
        while not self._over.wait(self._every_s):
            looks += 1
            looked_at = looks % _AVAILABLE_EVERY == 0 or self._every_s >= _AVAILABLE_EVERY * _EVERY_S
            left = available_memory_bytes() if looked_at else None
            held = sum(_resident(pid, self._kinds) for pid in (self._pid, *descendants(self._pid)))
            self.most_bytes = max(self.most_bytes, held)
            if held > self._limit_bytes:
                self.exceeded = f"its processes held {quantity_text.size(held)} of memory"
            elif left is not None and left < self._least_available_bytes:
                self.exceeded = f"the machine had only {quantity_text.size(left)} of memory available"
            if self.exceeded:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._pid, signal.SIGKILL)
                return


def _resident(pid: int, kinds: Sequence[str]) -> int:
    held = memory_of(pid)
    return sum(held.get(kind, 0) for kind in kinds)
