"""Ctrl-C, a polite kill and a closed terminal end a race or a watch in the same way: once, and in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """``status`` is the exit status of what was interrupted: it tells of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


def status_of(interrupt: BaseException | None) -> int:
    """130, as after Ctrl-C, where no other signal is known."""
    return interrupt.status if isinstance(interrupt, Interrupted) else 128 + signal.SIGINT


def hear_no_more() -> None:
    """What comes while things are put away would lose them. Within ``heard_once``, which puts everything back."""
    for each in _HEARD:
        signal.signal(each, signal.SIG_IGN)


@contextmanager
def heard_once() -> Iterator[None]:
    """Signals that somebody has switched off, as nohup does, stay off."""
    before = {each: signal.getsignal(each) for each in _HEARD if signal.getsignal(each) is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, _end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    hear_no_more()
    raise Interrupted(number)
