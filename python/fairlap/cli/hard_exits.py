"""Calls of ``os._exit`` in code that is timed, which would end the command in silence, as if it had succeeded."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from fairlap.cli.output import print_error


@contextmanager
def hard_exits_raised() -> Iterator[None]:
    """Make them a SystemExit in the main thread; another thread ends the process with a line and status 2.

    Processes that the code forks end as they ask to.
    """
    own, end_now = os.getpid(), os._exit

    def raised(status: int) -> NoReturn:
        if os.getpid() != own:
            end_now(status)
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(f"it called os._exit({status})")
        print_error(f"a thread of what was timed called os._exit({status})", "E_EXIT")
        end_now(2)

    os._exit = raised
    try:
        yield
    finally:
        os._exit = end_now
