"""One line on standard error where a callable is timed for much longer than it was to be."""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType

from fairlap.cli.output import print_note
from fairlap.errors import FairlapError
from fairlap.suggestions import part_named

AFTER_S = 4.0  # beyond what was asked for; warming up takes two
UNKNOWN_S = 6.0  # of a number of samples, or until an interval is narrow


@contextmanager
def waiting_line(names: Sequence[str], expected_s: float | None) -> Iterator[None]:
    """Say once which callable is waited for, or which module, where ``expected_s`` and a while have passed.

    The thread sleeps until then, and nothing is printed while calls are timed as expected.
    """
    from fairlap.engine.timed_calls import ASLEEP

    over, main = threading.Event(), threading.get_ident()
    after_s = AFTER_S + (UNKNOWN_S if expected_s is None else expected_s)
    began_s = time.monotonic()

    def say() -> None:
        if not over.wait(after_s):
            waited_s = time.monotonic() - began_s
            what = what_runs(names, sys._current_frames().get(main))
            print_note(f"waiting for {what}, {waited_s:.0f} s so far; no call is cut off, Ctrl-C ends it")

    thread = threading.Thread(target=say, name=ASLEEP, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def what_runs(names: Sequence[str], frame: FrameType | None) -> str:
    """Which of the callables is in these frames, or which of their modules is being imported; all of them if none."""
    codes = {code: name for name in names if (code := _code_of(name)) is not None}
    modules = {name.partition(":")[0] for name in names}
    while frame is not None:
        if (called := codes.get(frame.f_code)) is not None:
            return called
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") in modules:
            return f"the import of {frame.f_globals['__name__']}"
        frame = frame.f_back
    return ", ".join(names)


def _code_of(name: str) -> CodeType | None:
    """Of a Python function that is imported already."""
    module, _, path = name.partition(":")
    if module not in sys.modules:
        return None
    try:
        found = inspect.unwrap(part_named(sys.modules[module], path, module))
    except (FairlapError, ValueError):
        return None
    of_object = getattr(type(found), "__call__", None)  # noqa: B004  (for its code)
    code = getattr(found, "__code__", None) or getattr(of_object, "__code__", None)
    return code if isinstance(code, CodeType) else None
