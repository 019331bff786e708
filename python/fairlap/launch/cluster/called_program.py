"""Run a fairlap program in its own process, here or on a node of a cluster, and call it again and again.

Calls and answers are bytes with their length, on standard input and output. The program ends when its standard input
closes, so that one whose caller is gone leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from select import select
from typing import Protocol

from fairlap.errors import last_line, shortened
from fairlap.launch.cluster.node_process import environment_of_node, take_priority_of_node
from fairlap.machine.programs.orphans import in_own_session

_LENGTH_BYTES = 8
_ENDS_WITHIN_S = 5.0


class ProgramLost(Exception):
    """There is no answer, and will be none to any other call; the message says why."""


class CalledProgram(Protocol):
    """``call`` may wait in a thread while another one closes."""

    def call(self, message: bytes, within_s: float) -> bytes:
        """Return the answer, or raise ProgramLost."""
        ...

    def close(self) -> None: ...


class ProgramHere:
    """A ``CalledProgram`` on this machine. ``module`` calls ``answer_calls``."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        self._prints = tempfile.TemporaryFile()  # noqa: SIM115 (close() closes it)
        self._process = in_own_session(
            [sys.executable, "-P", "-m", module],
            guarded=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._prints,
            env=None if environment is None else dict(environment),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, message: bytes, within_s: float) -> bytes:
        """Kill it where the answer does not come in time."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        deadline_s = time.monotonic() + within_s
        try:
            to.write(len(message).to_bytes(_LENGTH_BYTES) + message)
            to.flush()
            length = int.from_bytes(_received(back.fileno(), _LENGTH_BYTES, deadline_s))
            return _received(back.fileno(), length, deadline_s)
        except TimeoutError:
            self._process.kill()
            raise ProgramLost(f"it did not answer within {within_s:g} seconds") from None
        except (EOFError, OSError):
            raise ProgramLost(self._how_it_ended()) from None

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN_S)
        status = self._process.poll()
        if status is None:
            return "its process closed its output"
        last = ""
        with contextlib.suppress(ValueError):  # closed meanwhile
            self._prints.seek(0)
            last = shortened(last_line(self._prints.read().decode(errors="replace")))
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"its process {how}" + (f": {last}" if last else "")

    def close(self) -> None:
        """Nothing that it does is worth waiting for."""
        self._process.kill()
        self._process.wait()
        self._prints.close()


class ProgramOnNode:
    """The same, in a process that a cluster made for a node."""

    def __init__(self, module: str) -> None:
        take_priority_of_node()
        self._program = ProgramHere(module, environment_of_node())

    def call(self, message: bytes) -> bytes:
        """Wait for ever: who calls through the cluster does not."""
        return self._program.call(message, math.inf)


def _received(pipe: int, count: int, deadline_s: float = math.inf) -> bytes:
    """Read without a buffer, which would hide what ``select`` waits for."""
    found = bytearray()
    while len(found) < count:
        left_s = deadline_s - time.monotonic()
        if not select([pipe], [], [], None if left_s == math.inf else max(left_s, 0.0))[0]:
            raise TimeoutError
        if not (part := os.read(pipe, count - len(found))):
            raise EOFError
        found += part
    return bytes(found)


def answer_calls(answer: Callable[[bytes], bytes]) -> None:
    """Answer in this thread for as long as standard input is open. What is printed goes to standard error."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read_calls, args=(calls,), daemon=True).start()
        while True:
            found = answer(calls.get())
            answers.write(len(found).to_bytes(_LENGTH_BYTES) + found)
            answers.flush()


def _read_calls(calls: queue.SimpleQueue[bytes]) -> None:
    """End the process at the end, whatever it is doing: no answer of its is read any more."""
    pipe = sys.stdin.fileno()
    with contextlib.suppress(EOFError, OSError):
        while True:
            calls.put(_received(pipe, int.from_bytes(_received(pipe, _LENGTH_BYTES))))
    os._exit(0)
