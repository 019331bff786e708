"""The parent's side of a worker: start it, ask, wait no longer than allowed, and leave nothing running."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from fairlap.errors import FairlapError, shortened
from fairlap.race import protocol
from fairlap.race.laps import Outcome
from fairlap.race.leftovers import end_all_marked

_MARK = "FAIRLAP_WORKER"
_LAST_WORDS = 65_536
_GOODBYE_S = 10.0
_LONGEST_LINE = 16_000_000

Answer = TypeVar("Answer", bound=protocol.Message)


class WorkerLost(FairlapError):
    """The worker gave no answer, and is gone. ``outcome`` says how in one word, the message in a line."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome


class WorkerProcess:
    """One worker. Use it with ``with``: however the block is left, no process of it is."""

    def __init__(
        self,
        command: tuple[str, ...],
        environment: Mapping[str, str],
        *,
        on_phase: Callable[[protocol.Phase], None] = lambda _: None,
    ) -> None:
        self._on_phase = on_phase
        self._mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._buffer = bytearray()
        self._told_on_stderr = bytearray()
        self._out_of_memory_kills = out_of_memory_kills()
        worker_reads, self._write = os.pipe()
        self._read, worker_writes = os.pipe()
        stderr_read, stderr_write = os.pipe()
        self._stderr = stderr_read
        ends = ["--read", str(worker_reads), "--write", str(worker_writes), "--parent", str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                [*command, *ends],
                env={**environment, _MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=stderr_write,
                stderr=stderr_write,
                pass_fds=(worker_reads, worker_writes),
                start_new_session=True,
            )
        except OSError as error:
            for end in (self._read, self._write, self._stderr):
                os.close(end)
            raise WorkerLost("exit", f"{command[0]} cannot be started: {error.strerror}") from None
        finally:
            for end in (worker_reads, worker_writes, stderr_write):
                os.close(end)
        for end in (self._read, self._stderr):
            os.set_blocking(end, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def pid(self) -> int:
        return self._process.pid

    def last_words(self) -> str:
        """The end of what it printed."""
        return self._told_on_stderr.decode(errors="replace")

    def hello(self, limit_s: float) -> protocol.Hello:
        hello = self._answer(protocol.Hello, "its start", time.monotonic() + limit_s)
        if hello.protocol != protocol.PROTOCOL_VERSION:
            spoken = f"it speaks version {hello.protocol} of the worker protocol, not {protocol.PROTOCOL_VERSION}"
            raise WorkerLost("protocol", spoken)
        return hello

    def ask(self, request: protocol.Message, answer: type[Answer], limit_s: float) -> Answer:
        """Send one request and wait for its answer."""
        deadline = time.monotonic() + limit_s
        doing = type(request).__name__.lower()
        self._send(request, doing)
        return self._answer(answer, doing, deadline)

    def measure(self, request: protocol.Measure, limit_s: float) -> tuple[protocol.Laps, bytes]:
        deadline = time.monotonic() + limit_s
        self._send(request, "measure")
        laps = self._answer(protocol.Laps, "measure", deadline)
        if laps.bytes < 0 or laps.bytes % 8:
            raise WorkerLost("protocol", f"its samples are {laps.bytes} bytes long, which is not a number of float64")
        while len(self._buffer) < laps.bytes:
            self._more("measure", deadline)
        raw = bytes(self._buffer[: laps.bytes])
        del self._buffer[: laps.bytes]
        return laps, raw

    def quit(self) -> protocol.Bye:
        """Ask it to end, and wait until it has."""
        bye = self.ask(protocol.Quit(), protocol.Bye, _GOODBYE_S)
        try:
            self._process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            raise WorkerLost("timeout", "it said goodbye and did not end") from None
        return bye

    def _send(self, request: protocol.Message, doing: str) -> None:
        try:
            os.write(self._write, protocol.encode(request) + b"\n")
        except BrokenPipeError:
            raise self._gone(doing) from None

    def _answer(self, wanted: type[Answer], doing: str, deadline: float) -> Answer:
        while True:
            message = self._message(doing, deadline)
            if isinstance(message, protocol.Phase):
                self._on_phase(message)
            elif isinstance(message, protocol.Failed):
                outcome: Outcome = "failed" if message.kind == "exception" else message.kind
                raise WorkerLost(outcome, f"in {message.phase}: {message.message}")
            elif isinstance(message, wanted):
                return message
            else:
                raise WorkerLost("protocol", f"it said {type(message).__name__.lower()!r} when asked for {doing}")

    def _message(self, doing: str, deadline: float) -> protocol.Message:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _LONGEST_LINE:
                raise WorkerLost("protocol", f"during {doing} it sent a line without an end")
            self._more(doing, deadline)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            message: protocol.Message = msgspec.json.decode(line, type=protocol.FromWorker)
            return message
        except msgspec.MsgspecError as error:
            said = shortened(line.decode(errors="replace"), 80)
            raise WorkerLost("protocol", f"during {doing} it sent {said!r}, which is no message: {error}") from None

    def _more(self, doing: str, deadline: float) -> None:
        """Wait for more of an answer; what it prints meanwhile is kept."""
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            self._end()
            raise WorkerLost("timeout", f"{doing} took longer than it may, and the process was ended")
        for key, _ in self._selector.select(left_s):
            chunk = os.read(key.fd, 1 << 20)
            if key.fd == self._stderr:
                self._told_on_stderr += chunk
                del self._told_on_stderr[:-_LAST_WORDS]
                if not chunk:
                    self._selector.unregister(self._stderr)
            elif chunk:
                self._buffer += chunk
            else:
                raise self._gone(doing)

    def _gone(self, doing: str) -> WorkerLost:
        """It closed its pipe: how did it end?"""
        try:
            status = self._process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            self._end()
            return WorkerLost("protocol", f"during {doing} it closed its pipe and went on running; it was ended")
        self._drain()
        words = shortened(next(iter(reversed(self.last_words().strip().splitlines())), ""))
        said = f"; it last printed: {words}" if words else ""
        if status == -signal.SIGKILL and out_of_memory_kills() > self._out_of_memory_kills:
            return WorkerLost("out_of_memory", f"the kernel killed it during {doing}: no memory was left{said}")
        if status < 0:
            return WorkerLost("crash", f"killed by {signal.Signals(-status).name} during {doing}{said}")
        return WorkerLost("exit", f"it ended with status {status} during {doing}{said}")

    def _drain(self) -> None:
        try:
            while chunk := os.read(self._stderr, 1 << 16):
                self._told_on_stderr += chunk
                del self._told_on_stderr[:-_LAST_WORDS]
        except BlockingIOError:
            return

    def _end(self) -> None:
        """Its whole session, and whatever left the session but carries its mark."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        end_all_marked(f"{_MARK}={self._mark}")
        if self._selector.get_map() is not None:
            self._drain()
            self._selector.close()
            for end in (self._read, self._write, self._stderr):
                os.close(end)


def out_of_memory_kills() -> int:
    """How often this kernel has killed for want of memory; 0 where it does not tell."""
    try:
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
