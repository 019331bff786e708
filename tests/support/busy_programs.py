"""Programs that use a core each, for tests beside load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def busy_programs(count: int) -> Iterator[list[int]]:
    """Run them meanwhile, and give their process ids.

    Each is a session of its own: the scheduler may divide cores among sessions rather than processes.
    """
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            command = [sys.executable, "-c", "while True: pass"]
            running = stack.enter_context(subprocess.Popen(command, start_new_session=True))
            stack.callback(running.kill)
            started.append(running.pid)
        yield started
