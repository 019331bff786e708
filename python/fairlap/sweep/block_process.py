"""A process that runs one block, and the call that starts it and waits.

The block is not run in the process that the cluster made: that one may be configured by the cluster, has threads, and
can be ended at any moment. This one has the environment of the machine, ends its contestants in order, and ends when
its standard input closes, so that a cluster that is gone leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import IO

import msgspec

from fairlap.errors import last_line, shortened
from fairlap.interrupts import interrupted_once
from fairlap.machine.programs.orphans import adopt_orphans
from fairlap.sweep.block import BlockTask, run_block

_ENDS_WITHIN_S = 20.0
_LENGTH_BYTES = 8
_LOOK_EVERY_S = 0.1


class BlockLost(Exception):
    """The process ended without a report; the message says how."""


def report_of(task: bytes, environment: Mapping[str, str]) -> bytes:
    """Run the encoded task in a process and return the encoded report; raise BlockLost."""
    with tempfile.TemporaryFile() as prints:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "fairlap.sweep.block_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=prints,
            env=dict(environment),
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # how it ended is reported below
                process.stdin.write(len(task).to_bytes(_LENGTH_BYTES) + task)
                process.stdin.flush()
            report = _read(process.stdout)
            status = process.wait()
        finally:
            _end(process)
        if status != 0:
            prints.seek(0)
            raise BlockLost(_how_it_ended(status, prints.read().decode(errors="replace")))
    return report


def _read(pipe: IO[bytes]) -> bytes:
    """Until it closes. An interrupt that a cluster raises in this thread cannot wake it from a read."""
    parts: list[bytes] = []
    reader = threading.Thread(target=lambda: parts.append(pipe.read()), daemon=True)
    reader.start()
    while reader.is_alive():
        reader.join(_LOOK_EVERY_S)
    return b"".join(parts)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that is still there: it was interrupted, and ends its contestants when its input closes."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process.stdout.close()


def _how_it_ended(status: int, printed: str) -> str:
    last = shortened(last_line(printed))
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return f"the process of the block {how}" + (f": {last}" if last else "")


def main() -> None:
    """Run a block, and write its report to standard output, which has nothing else.

    What contestants and libraries print goes to standard error.
    """
    adopt_orphans()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        length = int.from_bytes(_received(_LENGTH_BYTES))
        task = msgspec.msgpack.decode(_received(length), type=BlockTask)
        with interrupted_once():
            threading.Thread(target=_end_with_parent, daemon=True).start()
            report = run_block(task.plan, task.block, task.began_s)
        answers.write(msgspec.msgpack.encode(report))


def _received(count: int) -> bytes:
    """Unbuffered: a thread that waits in a buffered reader aborts the interpreter at its end."""
    parts = bytearray()
    while len(parts) < count and (part := os.read(sys.stdin.fileno(), count - len(parts))):
        parts += part
    return bytes(parts)


def _end_with_parent() -> None:
    _received(1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(1)
