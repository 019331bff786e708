"""The parent's side of one worker: start it, send requests with a time limit, end it and everything it started.

Every method returns the answer or raises ``WorkerLost``; after that no process of the worker is left.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from fairlap.errors import FairlapError
from fairlap.launch.containers.container import (
    Container,
    await_end,
    loss_in_container,
    processes_of,
    run_as_here,
)
from fairlap.launch.started_worker import limit_memory, start_process
from fairlap.launch.wire import PipeClosed
from fairlap.launch.worker_lost import LossOutcome, WorkerLost, loss_from_status, oom_kills, reported_failure
from fairlap.machine.programs.containers import remove_containers_of
from fairlap.machine.programs.guardian import TOKEN
from fairlap.machine.programs.orphans import end_orphans
from fairlap.machine.programs.process_tree import ProcessTree
from fairlap.machine.programs.processes import process_name
from fairlap.meters.memory import largest_ended_child_bytes, memory_of
from fairlap.request.fields.device_conditions import DeviceConditions
from fairlap.scenarios.asking import Ask, Prepared, Reply
from fairlap.scenarios.calls.latency_messages import DrawnCall, Measure, Measured
from fairlap.secrets import without_secrets
from fairlap.worker import protocol
from fairlap.worker.guardian import kill_session
from fairlap.worker.protocol import Begin, Failed, Phase, Which
from fairlap.worker.received import NotAMessage

_STOPPED_WITHIN_S = 5.0  # on a busy machine too
_LEAST_SEEN_S = 0.01  # a tick of the kernel; what is stopped uses nothing
_MOST_NAMED = 3
_READ_WITHIN_S = 0.2  # an answer that came while this process waited for another worker

INTERPRETER = "interpreter"
"""The phase from the start of the process to its hello, timed by the parent."""

_END_AFTER_LAST_MESSAGE_S = 10.0  # to free much memory takes seconds on a busy machine
_ENDED_WITHIN_S = 10.0
_CONTAINER_ENDED_WITHIN_S = 10.0

E_BUDGET = "E_BUDGET"

Answer = TypeVar("Answer", bound=Reply)
Samples = dict[str, npt.NDArray[np.float64]]
"""By quantity, in nanoseconds, the headline first."""


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _named(pids: Collection[int]) -> str:
    named = [f"{process_name(pid)} ({pid})" for pid in list(pids)[:_MOST_NAMED]]
    return ", ".join(named) + (f" and {len(pids) - len(named)} more" if len(pids) > len(named) else "")


class WorkerProcess:
    """Use it in ``with``, and start it from a thread that outlives it: the kernel ends it with that thread.

    Several can be started side by side: with ``greeted=False`` the constructor does not wait, and :meth:`greet` does.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        start_s: float = 60.0,
        cores: Collection[int] | None = None,
        memory_limit_bytes: int | None = None,
        prints_file: Path | None = None,
        greeted: bool = True,
        ends_by_s: float = math.inf,
        longest_request_s: float = math.inf,
        container: Container | None = None,
    ) -> None:
        """Start the worker, in the container if there is one.

        ``environment`` is complete: nothing is inherited. ``prints_file`` receives the last 64 KiB of its output. No
        request lasts beyond ``ends_by_s``, on the clock of ``time.monotonic``, whatever its own limit is, and none but
        an epoch or a trial longer than ``longest_request_s``.
        """
        self.phases_s: dict[str, float] = {}
        self.survivors: tuple[int, ...] = ()  # processes that even SIGKILL did not end
        self.has_own_share = False  # of a busy machine's CPU time, as a container may
        self._phase = INTERPRETER
        self._prints_file = prints_file
        self.token = secrets.token_hex(16)
        self._oom_kills = oom_kills()
        self._is_over = False
        self._began_s, self._start_s, self._ends_by_s = time.monotonic(), start_s, ends_by_s
        self._longest_request_s = longest_request_s
        self._environment = environment
        self._container, self._cores = container, cores
        variables = {**environment, TOKEN: self.token}
        if container is None:
            self._process, self._wire = start_process(command, variables, cores)
        else:
            self._process, self._wire = container.started(command, variables, self.token)
        self.pid = self.session = self._process.pid
        self._tree, self._tree_is_its = ProcessTree(self.pid), container is None
        self._memory_limit_bytes = memory_limit_bytes
        try:
            if container is None:
                self._limit_memory()
            if greeted:
                self.greet()
        except BaseException:
            self.end()
            raise

    def greet(self) -> None:
        """Wait for its first message."""
        deadline_s = max(self._began_s + self._start_s, time.monotonic() + _READ_WITHIN_S)
        self.hello = self._await(protocol.Hello, deadline_s, self._start_s)
        self.phases_s[INTERPRETER] = time.monotonic() - self._began_s
        if self.hello.protocol != protocol.VERSION:
            spoken = self.hello.protocol
            self._lose("protocol", f"it speaks version {spoken} of the protocol, not version {protocol.VERSION}")
        if self._container is not None:
            self._find_processes()
        elif _session_of(self.hello.pid) == self.session:  # and not a number in another namespace
            self.pid = self.hello.pid
            self._tree = ProcessTree(self.session, self.pid)
            self._limit_memory()

    def _find_processes(self) -> None:
        """Find those of the container, which have other ids here; until now the client stood for them."""
        try:
            found = processes_of(self.token, self.hello.pid)
            self.has_own_share = not run_as_here((found.first, found.worker), self._cores)
        except FairlapError:
            self.end()
            raise
        self.pid = found.worker
        self._tree, self._tree_is_its = ProcessTree(found.first, found.worker), True
        self._limit_memory()

    def _limit_memory(self) -> None:
        if self._memory_limit_bytes is not None:
            limit_memory(self.pid, self._memory_limit_bytes)

    def freeze(self) -> None:
        """Stop it with everything that it started, threads that spin included, until :meth:`thaw`.

        Raises WorkerLost for a contestant that continues to run.

        If this process is killed meanwhile, all of it ends: SIGKILL also ends what is stopped, and the guardian is not.
        """
        if not self._is_over and (running := self._tree.freeze(_STOPPED_WITHIN_S)):
            self._lose_running(f"{_named(running)} did not stop for the turns of others")

    def thaw(self) -> None:
        """Continue it.

        Raises WorkerLost for a contestant that computed while it was frozen: something continued it.
        """
        if self._is_over:
            return
        used_s = {pid: seconds for pid, seconds in self._tree.thaw().items() if seconds > _LEAST_SEEN_S}
        if used_s:
            total_s = sum(used_s.values())
            self._lose_running(f"{_named(used_s)} used {total_s:.2g} s of CPU time in the turns of others")

    def cpu_of_started_s(self) -> dict[int, float]:
        """Return the CPU time of every process that the worker started and that is alive."""
        return self._tree.cpu_of_started_s()

    def _lose_running(self, what: str) -> NoReturn:
        self._lose("disqualified", what, code="E_LEFT_RUNNING")

    def prepare(self, request: protocol.Prepare, *, within_s: float) -> Prepared:
        self.begin_to_prepare(request, within_s=within_s)
        return self.prepared()

    def begin_to_prepare(self, request: protocol.Prepare, *, within_s: float) -> None:
        """Ask only; :meth:`prepared` waits for the answer, so that several workers can prepare side by side."""
        within_s = min(within_s, self._longest_request_s)
        self._prepared_by_s, self._prepared_within_s = time.monotonic() + within_s, within_s
        self._send(request, self._prepared_by_s, within_s)

    def prepared(self) -> Prepared:
        deadline_s = max(self._prepared_by_s, time.monotonic() + _READ_WITHIN_S)
        return self._await(Prepared, deadline_s, self._prepared_within_s)

    def ask(self, request: Ask[Answer], *, within_s: float) -> Answer:
        """Send the request and await its answer, whose ``raw`` is the raw bytes that follow it."""
        if not request.has_own_length:
            within_s = min(within_s, self._longest_request_s)
        began_s = time.monotonic()
        self._send(request, began_s + within_s, within_s)
        kind = request.kind_of_answer()
        return self._await(
            kind, began_s + within_s, within_s, lambda: request.most_raw_bytes(time.monotonic() - began_s)
        )

    def answer(self, which: Which, path: Path, *, within_s: float, inputs: Path | None = None) -> protocol.Answered:
        """Its outputs are in the file. ``inputs`` are those of "data"."""
        return self.ask(protocol.Answer(which, str(path), "" if inputs is None else str(inputs)), within_s=within_s)

    def measure(
        self,
        *,
        within_s: float,
        seconds: float | None = None,
        samples: int | None = None,
        warmup: int | None = None,
        calls_per_sample: int | None = None,
        energy: bool = False,
        drawn: Sequence[DrawnCall] = (),
        drawn_file: Path | None = None,
        deal: int | None = None,
        on_device: DeviceConditions | None = None,
    ) -> tuple[Measured, Samples]:
        """Measure the contestant, and keep the outputs of the drawn calls in ``drawn_file``."""
        request = Measure(
            seconds,
            samples,
            warmup,
            calls_per_sample,
            "read" if energy else None,
            tuple(drawn),
            str(drawn_file or ""),
            deal,
            on_device,
        )
        measured = self.ask(request, within_s=within_s)
        values = np.frombuffer(self.raw, dtype="<f8")
        samples_ns: Samples = {}
        first = 0
        for quantity in measured.quantities:
            samples_ns[quantity.name] = values[first : first + quantity.count]
            first += quantity.count
        return measured, samples_ns

    def quit(self, *, within_s: float = 30.0) -> protocol.Ended:
        """Its last message. How the process ends after that, by itself or not, changes nothing."""
        ended = self.ask(protocol.Quit(), within_s=within_s)
        self.end()
        return ended

    def end(self) -> None:
        """Kill what is left of it and of everything it started. May be called repeatedly."""
        if self._is_over:
            return
        if self._tree_is_its:
            self.survivors = self._tree.kill(_ENDED_WITHIN_S)
        if self._container is not None:
            self._wire.hang_up()  # if it was just started, killing its client would not end it
            await_end(self._process, self.token, _CONTAINER_ENDED_WITHIN_S)
        self.survivors = self.survivors or kill_session(self.session, self.token)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)
        end_orphans()
        remove_containers_of(self._environment, self.token)
        self._is_over = True  # only now: after a second Ctrl-C this must run again
        self.printed = _without_secrets(self._wire.last_prints())
        self._wire.close()
        if self._prints_file is not None:
            self._prints_file.write_bytes(self.printed)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _send(self, request: Ask[Answer], deadline_s: float, within_s: float) -> None:
        self._phase = request.text
        try:
            self._wire.send(protocol.line_of(request), min(deadline_s, self._ends_by_s))
        except TimeoutError:
            self._require_budget(within_s)
            self._lose("timeout", f"it did not read the request to {self._phase} within {within_s:g} s")
        except PipeClosed:
            pass  # it may have reported the reason before it ended
        except BaseException:
            self.end()
            raise

    def _await(
        self, kind: type[Answer], deadline_s: float, within_s: float, most_raw: Callable[[], int] = lambda: 0
    ) -> Answer:
        """Wait for the answer and record phases. Any other end of the wait, Ctrl-C included, ends the worker."""
        requested = self._phase

        def require(reply: Reply) -> None:
            if not isinstance(reply, (kind, Begin, Phase, Failed)):
                raise NotAMessage(f"{type(reply).__name__.lower()}, which was not requested")
            if (announced := reply.raw_bytes) > (most := most_raw()):
                raise NotAMessage(f"{announced:,} raw bytes where no more than {most:,} were asked for")

        try:
            while True:
                reply, self.raw = self._wire.receive(min(deadline_s, self._ends_by_s), require)
                if isinstance(reply, kind):
                    return reply
                self._record(reply, requested)
        except TimeoutError:
            self._require_budget(within_s)
            within = "" if self._phase == requested else f" ({requested})"
            self._lose("timeout", f"it did not finish {self._phase}{within} within {within_s:g} s")
        except NotAMessage as received:
            self._lose("protocol", f"it sent an invalid message in {self._phase}: {received}")
        except PipeClosed:
            self._lose_by_status()
        except BaseException:
            self.end()
            raise

    def _record(self, reply: Reply, requested: str) -> None:
        match reply:
            case Begin(phase):
                self._phase = phase
            case Phase(name, seconds):
                self.phases_s[name] = self.phases_s.get(name, 0.0) + seconds
                self._phase = requested
            case Failed():
                self.end()
                raise reported_failure(reply)

    def _lose_by_status(self) -> NoReturn:
        """Classify by how the process ended. If it has not ended, it closed its pipe."""
        largest_bytes = max(largest_ended_child_bytes(), memory_of().get("peak", 0))  # it began as a copy of this one
        status = self._wire.status_within(_END_AFTER_LAST_MESSAGE_S)
        if status is None:
            self._lose("protocol", f"it closed its pipe in {self._phase} and kept running")
        held_bytes = largest_ended_child_bytes()  # of this one, if it was larger than all before it
        self.end()
        if self._container is not None:
            raise loss_in_container(status, self._phase, self.printed, self._oom_kills)
        known = held_bytes if held_bytes > largest_bytes else None
        raise loss_from_status(status, self._phase, self.printed, self._oom_kills, known)

    def _require_budget(self, within_s: float) -> None:
        if within_s == self._longest_request_s:  # which shortened it; an epoch or a trial has its own limit
            what = f"not finished: the budget allows no more than {within_s:g} s for {self._phase}"
            self._lose("timeout", what, code=E_BUDGET)
        if time.monotonic() >= self._ends_by_s:
            self._lose("timeout", f"not finished: the budget ended in {self._phase}", code=E_BUDGET)

    def _lose(self, outcome: LossOutcome, message: str, *, code: str = "") -> NoReturn:
        self.end()
        printed = self.printed.decode("utf-8", "replace")
        raise WorkerLost(outcome, message, phase=self._phase, details=printed, code=code)


def _without_secrets(printed: bytes) -> bytes:
    return without_secrets(printed.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
