"""Ctrl-C, SIGTERM and a closed terminal end a race or a watch in the same way: once, and in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """``status`` is the exit status, which follows from the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


def status_of(interrupt: BaseException | None) -> int:
    """130, as after Ctrl-C, where no other signal is known."""
    return interrupt.status if isinstance(interrupt, Interrupted) else 128 + signal.SIGINT


def ignore_signals() -> None:
    """For the time in which results are saved. The end of ``interrupted_once`` restores the handlers."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """The first signal raises ``Interrupted``, later ones do nothing. Those that are off, as under nohup, stay so."""
    before = {each: signal.getsignal(each) for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, _end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def signals_wait() -> Iterator[None]:
    """What must not be left half done, such as storing what was measured. Signals come after it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    ignore_signals()
    raise Interrupted(number)
