"""Ctrl-C, a polite kill and a closed terminal end a race or a watch in the same way: once, and in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """``status`` is the exit status of what was interrupted: it tells of the signal, and is 130 for Ctrl-C."""

    def __init__(self) -> None:
        self.status = 128 + signal.SIGINT

    def end(self, number: int, frame: FrameType | None) -> None:
        """What comes again while things are put away is not heard: it would lose what it waits for."""
        self.status = 128 + number
        for each in _HEARD:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt


@contextmanager
def heard_once() -> Iterator[Interrupts]:
    """Signals that somebody has switched off, as nohup does, stay off."""
    interrupts = Interrupts()
    before = {each: signal.getsignal(each) for each in _HEARD if signal.getsignal(each) is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, interrupts.end)
    try:
        yield interrupts
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
