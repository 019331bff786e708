"""fairlap on a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping


def on_a_terminal(
    *arguments: object, variables: Mapping[str, str], columns: int, only_errors: bool = False
) -> tuple[int, str]:
    """Run fairlap on a terminal, and return the exit status and what the terminal gets.

    It gets standard output and standard error, or the latter alone.
    """
    parent, child = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "fairlap", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if only_errors else child,
        stderr=child,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns), **variables},
    )
    os.close(child)
    written = b""
    try:
        while chunk := os.read(parent, 65536):
            written += chunk
    except OSError:  # Linux's way to say that the other side is closed
        pass
    os.close(parent)
    return running.wait(timeout=60), written.decode()
