"""Ctrl-C, SIGTERM and a closed terminal end a race or a watch in the same way: once, and in order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.01
STATUSES = frozenset(128 + each for each in _ENDING)
"""Exit statuses of commands that one of them ended."""


class Interrupted(KeyboardInterrupt):
    """``status`` is the exit status, which follows from the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


_came: list[int] = []
"""Signals, at most one: libraries that look for signals themselves raise a KeyboardInterrupt of their own instead."""


def status_of(interrupt: BaseException | None) -> int:
    """130, as after Ctrl-C, where no other signal is known."""
    if isinstance(interrupt, Interrupted):
        return interrupt.status
    return 128 + (_came[0] if _came else signal.SIGINT)


def ignore_signals() -> None:
    """For the time in which results are saved. The end of ``interrupted_once`` restores the handlers."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """Raise ``Interrupted`` at the first signal and ignore later ones; those that are off, as under nohup, stay so."""
    before = {each: signal.getsignal(each) for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN}
    _came.clear()
    for each in before:
        signal.signal(each, _end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def termination_raises() -> Iterator[None]:
    """Raise ``Interrupted`` at SIGTERM and SIGHUP too, outside of ``interrupted_once``; Ctrl-C raises as always."""
    by_default = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    _came.clear()
    for each in by_default:
        signal.signal(each, _end)
    try:
        yield
    finally:
        for each in by_default:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def signals_wait() -> Iterator[None]:
    """For what must not be left half done, such as storing what was measured: a signal is handled after it.

    Handlers are replaced rather than signals blocked, since any thread of the process may receive them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = {each: signal.getsignal(each) for each in _ENDING}
    handled = {each: handler for each, handler in before.items() if callable(handler)}
    for each in handled:
        signal.signal(each, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for each, handler in handled.items():
            signal.signal(each, handler)
    if came:
        number, frame = came[0]
        handled[signal.Signals(number)](number, frame)


@contextmanager
def called_at_a_signal(call: Callable[[], object]) -> Iterator[None]:
    """Call it before a signal is handled, such as to wake threads that sleep."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: handler for each in _ENDING if callable(handler := signal.getsignal(each))}

    def handle(number: int, frame: FrameType | None) -> None:
        call()
        before[signal.Signals(number)](number, frame)

    for each in before:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each, handler in before.items():
            if signal.getsignal(each) is handle:  # the first signal switches later ones off
                signal.signal(each, handler)


def _end(number: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_code.co_name == "__del__":  # Python drops what a destructor raises
        threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number)).start()
        return
    ignore_signals()
    _came.append(number)
    raise Interrupted(number)
