"""Run a command of others beneath a guardian, so that nothing it starts outlives it, or fairlap.

The command is run by ``python -m fairlap.machine.programs.guarded_command PIPE DROPPED WORD...`` in a session of its
own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlap.machine.programs.guardian import guarded
from fairlap.machine.programs.orphans import end_orphans, in_own_session
from fairlap.machine.programs.process_tree import ProcessTree, children

_ENDED_WITHIN_S = 5.0
_STANDARD_ERROR = 2
_FORKED_WITHIN_S, _LOOK_EVERY_S = 10.0, 0.005


class GuardedCommand:
    """One that runs until it ends or is ended. Start it from a thread that outlives it.

    It does not get the ``dropped`` variables of the environment. ``guardian`` is the process whose descendants are the
    command and all that it started.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        output: int,
        errors: int | None = None,
        *,
        dropped: Sequence[str] = (),
    ) -> None:
        read, self._held = os.pipe()
        try:
            self._process = in_own_session(
                [sys.executable, "-P", "-m", __name__, str(read), ",".join(dropped), *words],
                guarded=True,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                pass_fds=[read],
            )
        except BaseException:
            os.close(self._held)
            raise
        finally:
            os.close(read)
        self.guardian = self._process.pid
        self._is_over = False

    def status(self) -> int | None:
        """Negative for a signal; None while it runs."""
        return self._process.poll()

    def wait(self, within_s: float | None = None) -> int:
        return self._process.wait(within_s)

    def tree(self) -> ProcessTree | None:
        """Find what it started, without the guardian; None where it has ended, or the system lists no processes."""
        deadline_s = time.monotonic() + _FORKED_WITHIN_S
        while self.status() is None and time.monotonic() < deadline_s:
            if found := children(self.guardian):
                return ProcessTree(self.guardian, found[0])
            time.sleep(_LOOK_EVERY_S)
        return None

    def end(self) -> None:
        """End what is left of it. May be called repeatedly."""
        if self._is_over:
            return
        os.close(self._held)  # at which its guardian kills everything
        self._is_over = True
        try:
            self._process.wait(_ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            ProcessTree(self.guardian).kill(_ENDED_WITHIN_S)
        end_orphans()


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

    Raises ``subprocess.TimeoutExpired`` for one that took longer than ``within_s``.
    """
    command = GuardedCommand(words, folder, environment, output, output, dropped=dropped)
    try:
        return command.wait(within_s)
    finally:
        command.end()


def main() -> None:
    pipe, dropped, *words = sys.argv[1:]
    guarded(int(pipe))
    os.close(int(pipe))
    for name in filter(None, dropped.split(",")):
        os.environ.pop(name, None)
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
