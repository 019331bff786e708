"""Run a command of others beneath a guardian, so that nothing it starts outlives it, or fairlap.

The command is run by ``python -m fairlap.machine.programs.guarded_command PIPE WORD...`` in a session of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlap.machine.programs.guardian import guarded
from fairlap.machine.programs.orphans import in_own_session

_ENDED_WITHIN_S = 5.0


def run_guarded(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """Return its status, negative for a signal. Its output goes to standard error."""
    read, write = os.pipe()
    try:
        process = in_own_session(
            [sys.executable, "-P", "-m", __name__, str(read), *words],
            guarded=True,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[read],
        )
    finally:
        os.close(read)
    try:
        return process.wait()
    finally:
        os.close(write)  # ends what is left
        process.wait(_ENDED_WITHIN_S)


def main() -> None:
    pipe, *words = sys.argv[1:]
    guarded(int(pipe))
    os.close(int(pipe))
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
