"""Run a command of others beneath a guardian, so that nothing it starts outlives it, or fairlap.

The command is run by ``python -m fairlap.machine.programs.guarded_command PIPE DROPPED WORD...`` in a session of its
own.
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
_STANDARD_ERROR = 2


def run_guarded(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    output: int = _STANDARD_ERROR,
    within_s: float | None = None,
    dropped: Sequence[str] = (),
) -> int:
    """Return its status, negative for a signal. Its output goes to standard error, or to another descriptor.

    Raises ``subprocess.TimeoutExpired`` for one that took longer than ``within_s``. It does not get the ``dropped``
    variables of the environment.
    """
    read, write = os.pipe()
    try:
        process = in_own_session(
            [sys.executable, "-P", "-m", __name__, str(read), ",".join(dropped), *words],
            guarded=True,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[read],
        )
    finally:
        os.close(read)
    try:
        return process.wait(within_s)
    finally:
        os.close(write)  # ends what is left
        process.wait(_ENDED_WITHIN_S)


def main() -> None:
    pipe, dropped, *words = sys.argv[1:]
    guarded(int(pipe))
    os.close(int(pipe))
    for name in filter(None, dropped.split(",")):
        os.environ.pop(name, None)
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
