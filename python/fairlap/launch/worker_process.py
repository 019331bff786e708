"""The parent's side of one worker: started, asked under a time limit, and ended with all that it started.

Every method either gives the answer or raises ``WorkerLost``, and then nothing of the worker is left.

How a worker's process comes to be: its pipes, its session, its cores, its limit of memory.

Nothing runs between fork and exec, where a parent with threads could lock itself up.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.launch.wire import PipeClosed, Rubbish, Wire
from fairlap.launch.worker_lost import LossOutcome, WorkerLost, ended, oom_kills, told_failure
from fairlap.scenarios.latency import Fed, Feed, Measure, Measured
from fairlap.worker import protocol
from fairlap.worker.guardian import TOKEN, kill_session
from fairlap.worker.protocol import Begin, Failed, Phase, Reply, Request, Which


def started(
    command: Sequence[str], environment: Mapping[str, str], cores: Collection[int] | None
) -> tuple[subprocess.Popen[bytes], Wire]:
    """The worker reads requests and writes replies on descriptors of its own; all that it prints goes a third way."""
    for_worker_read, requests = os.pipe()
    replies, for_worker_write = os.pipe()
    prints, for_worker_print = os.pipe()
    given = (for_worker_read, for_worker_write)
    options = ("--read", str(given[0]), "--write", str(given[1]), "--parent", str(os.getpid()))
    try:
        with _on_cores(cores):
            process = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.DEVNULL,
                stdout=for_worker_print,
                stderr=for_worker_print,
                env=environment,
                pass_fds=given,
                start_new_session=True,
            )
    except BaseException as error:
        for fd in (requests, replies, prints):
            os.close(fd)
        if isinstance(error, OSError):
            message = f"{command[0]} cannot be started: {error.strerror}"
            raise WorkerLost("failed", message, phase="start", code="E_START") from None
        raise
    finally:
        for fd in (*given, for_worker_print):
            os.close(fd)
    return process, Wire(requests, replies, prints, process)


@contextmanager
def _on_cores(cores: Collection[int] | None) -> Iterator[None]:
    """A child has its parent's cores from its first instruction on, so the parent goes there for a moment."""
    if cores is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise NotAvailable("this system binds no process to cores; race under as-found conditions")
    before = os.sched_getaffinity(0)
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)
        if os.sched_getaffinity(0) != set(cores):
            raise InvalidRequest(f"the cores {','.join(map(str, cores))} are not all to be had here")
        yield
    finally:
        os.sched_setaffinity(0, before)


def limit_memory(pid: int, limit_bytes: int) -> None:
    """Of address space, for the worker and each of its children. It is set before the worker is asked for anything."""
    import resource

    if not hasattr(resource, "prlimit"):
        raise NotAvailable("this system limits no other process's memory")
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_AS, (limit_bytes, limit_bytes))


INTERPRETER = "interpreter"
"""From the start of the process to its first word, as the parent sees it."""

_END_AFTER_LAST_WORD_S = 2.0

Answer = TypeVar("Answer", bound=Reply)


Samples = dict[str, npt.NDArray[np.float64]]
"""By quantity, in nanoseconds, the headline first."""


def python_worker(python: str | Path = sys.executable) -> tuple[str, ...]:
    """The command of fairlap's own worker. The folder it happens to run in is not searched for modules."""
    return (str(python), "-P", "-m", "fairlap.worker")


class WorkerProcess:
    """Use it in ``with``. It must be started from a thread that outlives it: the kernel ends it with that thread."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        start_s: float = 60.0,
        cores: Collection[int] | None = None,
        memory_limit_bytes: int | None = None,
        prints_file: Path | None = None,
    ) -> None:
        """``environment`` is given whole. ``prints_file`` gets the last 64 KiB that it printed, once it has ended."""
        self.phases_s: dict[str, float] = {}
        self.survivors: tuple[int, ...] = ()  # processes that even SIGKILL did not end
        self._phase = INTERPRETER
        self._prints_file = prints_file
        self.token = secrets.token_hex(16)
        self._oom_kills = oom_kills()
        self._is_over = False
        began_s = time.monotonic()
        self._process, self._wire = started(command, {**environment, TOKEN: self.token}, cores)
        try:
            if memory_limit_bytes is not None:
                limit_memory(self._process.pid, memory_limit_bytes)
            self.hello = self._awaited(protocol.Hello, began_s + start_s, start_s)
            self.phases_s[INTERPRETER] = time.monotonic() - began_s
            if self.hello.protocol != protocol.VERSION:
                self._lose(
                    "protocol",
                    f"it speaks version {self.hello.protocol} of the protocol; this is version {protocol.VERSION}",
                )
        except BaseException:
            self.end()
            raise

    def prepare(self, request: protocol.Prepare, *, within_s: float) -> protocol.Prepared:
        return self._asked(request, protocol.Prepared, within_s)

    def answer(self, which: Which, path: Path, *, within_s: float) -> float:
        """Seconds that the one call took; what it gave is in the file then."""
        return self._asked(protocol.Answer(which, str(path)), protocol.Answered, within_s).seconds

    def feed(self, files: Mapping[str, str], samples: int, seed: int, path: Path, *, within_s: float) -> str:
        """What feeds; the proof is in the file then."""
        return self._asked(Feed(dict(files), samples, seed, str(path)), Fed, within_s).pipeline

    def measure(
        self,
        *,
        within_s: float,
        seconds: float | None = None,
        samples: int | None = None,
        warmup: int | None = None,
        calls_per_sample: int | None = None,
        energy: bool = False,
    ) -> tuple[Measured, Samples]:
        request = Measure(seconds, samples, warmup, calls_per_sample, "read" if energy else None)
        measured = self._asked(request, Measured, within_s)
        values = np.frombuffer(self._raw, dtype="<f8")
        samples_ns: Samples = {}
        first = 0
        for quantity in measured.quantities:
            samples_ns[quantity.name] = values[first : first + quantity.count]
            first += quantity.count
        return measured, samples_ns

    def quit(self, *, within_s: float = 30.0) -> protocol.Ended:
        """Its last message. How the process ends after that, by itself or not, changes nothing."""
        ended = self._asked(protocol.Quit(), protocol.Ended, within_s)
        self.end()
        return ended

    def end(self) -> None:
        """Kill what is left of it and of all that it started; harmless when repeated."""
        if self._is_over:
            return
        self.survivors = kill_session(self._process.pid, self.token)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)
        self._is_over = True  # not before: a second Ctrl-C must not leave this half done for ever
        self.printed = self._wire.last_prints()
        self._wire.close()
        if self._prints_file is not None:
            self._prints_file.write_bytes(self.printed)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _asked(self, request: Request, kind: type[Answer], within_s: float) -> Answer:
        self._phase = type(request).__name__.lower()
        deadline_s = time.monotonic() + within_s
        try:
            self._wire.send(protocol.line_of(request), deadline_s)
        except TimeoutError:
            self._lose("timeout", f"it did not take the request to {self._phase} within {within_s:g} s")
        except PipeClosed:
            pass  # it may have said why before it went
        except BaseException:
            self.end()
            raise
        return self._awaited(kind, deadline_s, within_s)

    def _awaited(self, kind: type[Answer], deadline_s: float, within_s: float) -> Answer:
        """The answer; phases are noted as they come by. Any other end of the wait, Ctrl-C too, ends the worker."""
        asked = self._phase
        try:
            while True:
                reply, self._raw = self._wire.receive(deadline_s)
                if isinstance(reply, kind):
                    return reply
                self._note(reply, asked)
        except TimeoutError:
            within = "" if self._phase == asked else f" ({asked})"
            self._lose("timeout", f"it did not finish {self._phase}{within} within {within_s:g} s")
        except Rubbish as rubbish:
            self._lose("protocol", f"it sent what is no message in {self._phase}: {rubbish}")
        except PipeClosed:
            self._gone()
        except BaseException:
            self.end()
            raise

    def _note(self, reply: Reply, asked: str) -> None:
        match reply:
            case Begin(phase):
                self._phase = phase
            case Phase(name, seconds):
                self.phases_s[name] = self.phases_s.get(name, 0.0) + seconds
                self._phase = asked
            case Failed():
                self.end()
                raise told_failure(reply)
            case _:
                raise Rubbish(f"{type(reply).__name__.lower()}, which nobody asked for")

    def _gone(self) -> NoReturn:
        """Told apart by how the process ended; when it has not, it closed the pipe and lives on."""
        status = self._wire.status_within(_END_AFTER_LAST_WORD_S)
        if status is None:
            self._lose("protocol", f"it closed its pipe in {self._phase} and ran on")
        self.end()
        raise ended(status, self._phase, self.printed, self._oom_kills)

    def _lose(self, outcome: LossOutcome, message: str) -> NoReturn:
        self.end()
        raise WorkerLost(outcome, message, phase=self._phase, details=self.printed.decode("utf-8", "replace"))
