"""The parent's ends of a worker's pipes: complete messages, or the reason why there are none.

One loop waits for replies, output, the end of the process and the deadline at once. Nothing here blocks beyond the
deadline, whatever the worker does.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable

from fairlap.machine.programs.processes import end_descriptor
from fairlap.scenarios.asking import Reply
from fairlap.worker.received import Received

KEPT_OF_PRINTS_BYTES = 64 * 2**10
_CHUNK_BYTES = 2**20
_LOOK_AT_PROCESS_EVERY_S = 0.05  # where the system has no pidfd


class PipeClosed(Exception):
    """The worker ended, or closed its end of the pipe."""


class Wire:
    """Owns the descriptors, not the process."""

    def __init__(self, requests: int, replies: int, prints: int, process: subprocess.Popen[bytes]) -> None:
        self._requests, self._replies, self._prints = requests, replies, prints
        self._owned = [requests, replies, prints]
        self._process = process
        self._end = end_descriptor(process.pid)
        self._owned += [] if self._end is None else [self._end]
        self._printed = bytearray()
        self._received = Received()
        self._closed = False
        self._poll = select.poll()
        for fd in (requests, replies, prints):
            os.set_blocking(fd, False)
        for fd in self._owned[1:]:
            self._poll.register(fd, select.POLLIN)

    def send(self, line: bytes, deadline_s: float) -> None:
        left = memoryview(line)
        self._poll.register(self._requests, select.POLLOUT)
        try:
            while left:
                try:
                    left = left[os.write(self._requests, left) :]
                except BlockingIOError:
                    self._wait(deadline_s)
                except BrokenPipeError:
                    raise PipeClosed from None
                if self._closed:
                    raise PipeClosed
        finally:
            self._poll.unregister(self._requests)

    def receive(self, deadline_s: float, require: Callable[[Reply], None]) -> tuple[Reply, bytes]:
        """Return the next message with its raw bytes.

        Raises TimeoutError, PipeClosed or NotAMessage; ``require`` raises the last before raw bytes are read.
        """
        while True:
            whole = self._received.message(require)
            if whole is not None:
                return whole
            if self._closed:
                raise PipeClosed
            self._wait(deadline_s)

    def status_within(self, seconds: float) -> int | None:
        """Return the exit status, negative for a signal; None while the process is running."""
        try:
            return self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def last_prints(self) -> bytes:
        """Return the end of the output, with what is still in the pipe."""
        while self._read_prints():
            pass
        return bytes(self._printed)

    def hang_up(self) -> None:
        """Send nothing more: a worker ends when its requests have ended."""
        if self._requests in self._owned:
            self._owned.remove(self._requests)
            os.close(self._requests)

    def close(self) -> None:
        while self._owned:
            os.close(self._owned.pop())

    def __del__(self) -> None:
        """If Ctrl-C interrupts the start, the worker sees its pipe close and ends."""
        self.close()

    def _wait(self, deadline_s: float) -> None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        slice_s = left_s if self._end is not None else min(left_s, _LOOK_AT_PROCESS_EVERY_S)
        ready = {fd for fd, _ in self._poll.poll(1000 * min(slice_s, 3600.0))}
        ended = self._end in ready if self._end is not None else self._process.poll() is not None
        if self._prints in ready and not self._read_prints():
            self._poll.unregister(self._prints)
        if self._replies in ready or ended:
            self._read_replies()
            self._closed = self._closed or ended  # a pipe holds less than a chunk, so nothing more can come

    def _read_replies(self) -> bool:
        try:
            chunk = os.read(self._replies, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._received.add(chunk)
        self._closed = self._closed or not chunk
        return bool(chunk)

    def _read_prints(self) -> bool:
        """Read a chunk of the output, and return False at its end, or when nothing more is there."""
        try:
            chunk = os.read(self._prints, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._printed += chunk
        del self._printed[:-KEPT_OF_PRINTS_BYTES]
        return bool(chunk)
