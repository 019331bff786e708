"""fairlap on a terminal of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence

_END = "(the end of a command)"
_ONE_AFTER_THE_OTHER = f"""
import json, sys
from fairlap.__main__ import main
from fairlap.cli import output
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    output._printed_json = False
    try:
        main()
    except SystemExit:
        sys.stdout.flush()
    print({_END!r}, flush=True)
"""


def on_a_terminal(
    *arguments: object, variables: Mapping[str, str], columns: int, only_errors: bool = False
) -> tuple[int, str]:
    """Run fairlap on a terminal, and return the exit status and what the terminal gets.

    It gets standard output and standard error, or the latter alone.
    """
    return _written_by(["-m", "fairlap", *map(str, arguments)], variables, columns, only_errors=only_errors)


def several_on_a_terminal(commands: Sequence[Sequence[object]], *, columns: int) -> list[str]:
    """Run several commands in one process, which imports fairlap once, and return what the terminal gets of each."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    status, written = _written_by(["-c", _ONE_AFTER_THE_OTHER, words], {}, columns)
    *of_each, rest = written.split(f"{_END}\r\n")
    assert (status, rest, len(of_each)) == (0, "", len(commands)), written
    return of_each


def _written_by(
    arguments: Sequence[str], variables: Mapping[str, str], columns: int, *, only_errors: bool = False
) -> tuple[int, str]:
    parent, child = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, *arguments],
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
