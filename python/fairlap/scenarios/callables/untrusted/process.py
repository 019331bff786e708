"""A contestant's process as the parent has it: it runs only while the clock runs, and is stopped otherwise.

The clock starts before it is continued and ends when it rings back, so that nothing it does is outside of the time
that counts: it cannot see inputs earlier, and what it has not answered by then is found missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.programs.passed_environment import handed_on
from fairlap.printable import one_line
from fairlap.scenarios.callables.untrusted.contestant import (
    DONE,
    DRIVER_VARIABLE,
    LONGEST_TEXT_BYTES,
    NO_DEVICE_MEMORY,
    NOT_IMPORTED,
    OTHER_FORM,
    RAISED,
    TEXT_AT,
    Orders,
)
from fairlap.scenarios.callables.untrusted.draws import DrawnSlots
from fairlap.scenarios.callables.untrusted.exclusion import Excluded
from fairlap.scenarios.callables.untrusted.host_exchange import HostExchange, Words
from fairlap.scenarios.callables.untrusted.layout import Layout
from fairlap.scenarios.callables.untrusted.memory import PAGE_BYTES, SharedMemory
from fairlap.scenarios.callables.untrusted.on_device.device_exchange import DeviceExchange, PrivateMemory
from fairlap.scenarios.callables.untrusted.referee_code import CallableName
from fairlap.scenarios.callables.untrusted.witness import Witness

_MEMORY_SHARE = 0.5  # of what is available
_PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PASSED_BEGIN = ("OMP_", "MKL_", "OPENBLAS_", "KMP_", "NUMEXPR_", "GOMP_")
_OF_DEVICE = (*_PASSED, DRIVER_VARIABLE)
_OF_DEVICE_BEGIN = (*_PASSED_BEGIN, "CUDA_", "NVIDIA_")
_LAST_LOOK_S = 0.15
_LAST_LOOKS = 4
_ENDS_WITHIN_S = 1.0
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 20e-6, 1e-3
_LONG_MS = 3000  # to be waited for; then it is said, once
_STILL_BUSY_SHARE = 0.2  # of a core; pools of threads spin for less than the last look before they sleep
_PACKAGE_ROOT = str(Path(__file__).parents[4])


@dataclass(frozen=True)
class Terms:
    """What every contestant of a race has alike."""

    arguments: Layout
    answers: Layout
    slots: int
    inputs: DrawnSlots  # the first page of its memory says which slots to call
    copied: Words
    on_device: PrivateMemory | None
    limit_s: float  # of one ring
    cpu_s: float
    witness: Witness
    notify: Callable[[str], None]  # of a contestant that is waited for


class ContestantProcess:
    """Raises Excluded with a code for whatever its contestant does wrong. ``name`` None is the empty call."""

    def __init__(self, name: CallableName | None, terms: Terms) -> None:
        self._terms = terms
        self._name = "the empty call" if name is None else name.text
        self._is_announced = False
        self._scratch: ScratchFolder | None = None
        self._continued_by_others = 0
        self._status: tuple[int, int] | None = None  # how it ended: the kernel's code, and the status or signal
        of_host = 0 if terms.on_device else terms.slots * terms.answers.slot_bytes
        self._answered = SharedMemory("fairlap-answers", PAGE_BYTES + of_host, read_only_elsewhere=False)
        self._header = terms.inputs.memory.bytes[:16].view(np.int64)
        self._exchange: HostExchange | DeviceExchange = HostExchange(
            self._answered, terms.answers, terms.inputs, terms.copied
        )
        if terms.on_device:
            self._exchange = DeviceExchange(terms.on_device, terms.arguments, terms.answers, terms.slots)
        self._ring, theirs = socket.socketpair()
        try:
            self._process = self._started(name, theirs)
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._stop_it_when_it_rings()
        self._poll = select.poll()
        self._end = os.pidfd_open(self.pid)
        for fd in (self._ring.fileno(), self._end):
            self._poll.register(fd, select.POLLIN)
        if terms.on_device:
            self._stop()  # they import one after another, so that it is known whose work is on the device

    def _started(self, name: CallableName | None, ring: socket.socket) -> subprocess.Popen[bytes]:
        place, folder = "" if name is None else name.place, Path("/")
        if name is not None and name.file is not None:
            self._scratch = ScratchFolder()
            folder = self._scratch.path / "own"  # without the file that is locked
            folder.mkdir()
            copied = folder / name.file.name
            shutil.copyfile(name.file, copied)  # nothing beside it can be read
            place = str(copied)
        memory = available_memory_bytes()
        orders = Orders(
            place=place,
            name="" if name is None else name.name,
            arguments=self._terms.arguments,
            answers=self._terms.answers,
            slots=self._terms.slots,
            inputs=(self._terms.inputs.memory.fd, self._terms.inputs.memory.nbytes),
            answered=(self._answered.fd, self._answered.nbytes),
            ring=ring.fileno(),
            cpu_s=self._terms.cpu_s,
            memory_bytes=None if memory is None else int(memory * _MEMORY_SHARE),
            device=self._exchange.orders() if isinstance(self._exchange, DeviceExchange) else None,
        )
        program = (
            f"import sys; {_PACKAGE_ROOT!r} in sys.path or sys.path.insert(0, {_PACKAGE_ROOT!r}); "
            "from fairlap.scenarios.callables.untrusted.contestant import main; main()"
        )
        stdin = os.memfd_create("fairlap-orders", os.MFD_CLOEXEC)
        with os.fdopen(stdin, "wb+") as file:
            file.write(msgspec.json.encode(orders))
            file.seek(0)
            return subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=_environment(on_device=self._terms.on_device is not None),
                pass_fds=(self._terms.inputs.memory.fd, self._answered.fd, ring.fileno()),
                start_new_session=True,
            )

    def imported(self, within_s: float) -> None:
        """Wait until it has imported its callable, and stop it."""
        if self._terms.on_device:
            self._continue()
        self._await(within_s, "import")
        self._stop()
        self._require_done(self._taken())
        self._exchange.require_quiet()

    def timed(self, first: int, count: int) -> int:
        """Call it with these slots' arguments, and return the nanoseconds until every answer was there."""
        exchange, poll, ring, pid = self._exchange, self._poll.poll, self._ring, self.pid
        exchange.prepare(first, count)
        self._answered.bytes[:8] = 0
        self._header[:] = first, count
        self._require_stopped()
        began_ns = time.perf_counter_ns()
        exchange.reveal(first, count)
        os.kill(pid, signal.SIGCONT)
        with contextlib.suppress(OSError):  # it closed its end, which is found below
            ring.send(b"?", socket.MSG_DONTWAIT)
        ready = poll(_LONG_MS) or self._rung_late("answer", self._terms.limit_s)
        ended_ns = exchange.ended_ns(first, count) if ready else 0
        self._stop()
        self._require_rung(ready)
        self._require_done(self._taken())
        exchange.require_in_time(first, count)
        return ended_ns - began_ns

    def answers(self, slot: int) -> list[np.ndarray[Any, Any]]:
        """Copy the answers of a slot, of a process that is stopped."""
        return self._exchange.answers(slot)

    def require_quiet(self) -> None:
        """Let it run with nothing to do, and exclude it where threads of it still work after a while."""
        worked_s = 0.0
        self._require_stopped()
        self._continue()
        for _ in range(_LAST_LOOKS):  # the first time, pools of threads spin before they sleep
            before_s = self._worked_s()
            time.sleep(_LAST_LOOK_S)
            worked_s = self._worked_s() - before_s
            if worked_s <= _STILL_BUSY_SHARE * _LAST_LOOK_S:
                break
        else:
            self._stop()
            what = f"threads of it worked, or waited to, for {quantity_text.seconds(worked_s)} with nothing to answer"
            raise Excluded(what, code="E_LEFT_RUNNING")
        self._stop()
        self._exchange.require_quiet()

    def end(self) -> None:
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._reap(os.WEXITED)
        self._close()
        os.close(self._end)

    def _close(self) -> None:
        self._ring.close()
        self._exchange.close()
        self._answered.close()
        if self._scratch is not None:
            self._scratch.remove()

    def _require_stopped(self) -> None:
        """Exclude one that was continued since it was stopped, unless another program did that."""
        if os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG) is None:
            return
        if not self._others_continued_it():
            raise Excluded("it continued itself while others had their turns", code="E_LEFT_RUNNING")
        self._stop()

    def _others_continued_it(self) -> bool:
        """Whether another program continued all processes since this was asked last."""
        found = self._terms.witness.has_seen_more(self._continued_by_others)
        self._continued_by_others = self._terms.witness.times
        return found

    def _stop_it_when_it_rings(self) -> None:
        """Have the kernel send SIGSTOP as the ring arrives, before this process runs again and its clock ends.

        What a contestant did between its ring and the signal of this process would count for nobody.
        """
        ring = self._ring.fileno()
        fcntl.fcntl(ring, fcntl.F_SETOWN, self.pid)
        fcntl.fcntl(ring, fcntl.F_SETSIG, signal.SIGSTOP)
        fcntl.fcntl(ring, fcntl.F_SETFL, fcntl.fcntl(ring, fcntl.F_GETFL) | os.O_ASYNC)

    def _continue(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def _stop(self) -> None:
        """Return when every thread has stopped, or the process has ended; exclude one that does neither."""
        if self._status is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)
        until_s, pause_s = time.perf_counter() + self._terms.limit_s, _SHORTEST_PAUSE_S
        while not self._reap(os.WSTOPPED | os.WEXITED | os.WNOHANG):
            if time.perf_counter() > until_s:
                what = f"it could not be stopped within {quantity_text.seconds(self._terms.limit_s)}"
                raise Excluded(what, code="E_LEFT_RUNNING")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _reap(self, which: int) -> bool:
        """Return whether it stopped or ended."""
        found = os.waitid(os.P_PID, self.pid, which)
        if found is not None and found.si_code != os.CLD_STOPPED:
            self._status = (found.si_code, found.si_status)
            self._process.returncode = -found.si_status if found.si_code != os.CLD_EXITED else found.si_status
        return found is not None

    def _await(self, within_s: float, doing: str) -> None:
        if not (self._poll.poll(_LONG_MS) or self._rung_late(doing, within_s)):
            self._stop()
            raise Excluded(f"it did not finish to {doing} within {within_s:g} s", code="E_TIMEOUT")

    def _rung_late(self, doing: str, within_s: float) -> list[tuple[int, int]]:
        """Say that it is waited for, and wait for as long as it has."""
        if not self._is_announced:
            self._is_announced = True
            self._terms.notify(f"waiting for {self._name} to {doing}, for {within_s:g} s at most")
        left_ms = max(int(within_s * 1e3) - _LONG_MS, 0)
        return self._poll.poll(left_ms) or self._rung_after_a_pause()

    def _rung_after_a_pause(self) -> list[tuple[int, int]]:
        """Wait once more where another program stopped all processes and continued them."""
        return self._poll.poll(int(self._terms.limit_s * 1e3)) if self._others_continued_it() else []

    def _require_rung(self, ready: list[tuple[int, int]]) -> None:
        if not ready:
            raise Excluded(f"it did not ring back within {self._terms.limit_s:g} s", code="E_TIMEOUT")

    def _taken(self) -> int:
        """Return its status after it rang exactly once; the memory is read only while it is stopped."""
        if self._status is not None:
            raise self._ended()
        try:
            rung = self._ring.recv(64, socket.MSG_DONTWAIT)
        except OSError:
            rung = b""
        if not rung:
            raise self._ended_soon()
        if len(rung) != 1:
            raise Excluded(f"it rang {len(rung)} times for one sample", code="E_PROTOCOL")
        return int(self._answered.bytes[:8].view(np.int64)[0])

    def _require_done(self, status: int) -> None:
        if status == DONE:
            return
        length = min(max(int(self._answered.bytes[8:16].view(np.int64)[0]), 0), LONGEST_TEXT_BYTES)
        text = one_line(bytes(self._answered.bytes[TEXT_AT : TEXT_AT + length]).decode("utf-8", "replace"))
        if status == NO_DEVICE_MEMORY:
            raise Excluded(f"it cannot open its memory of the device: {text}", code="E_DEVICE_SHARING")
        if status == OTHER_FORM:
            raise Excluded(text, code="E_OUTPUT")
        if status in (RAISED, NOT_IMPORTED):
            doing = "importing it" if status == NOT_IMPORTED else "it"
            raise Excluded(f"{doing} raised {text}", code="E_CALLABLE_RAISED")
        raise Excluded("it rang back before it was done", code="E_DEFERRED_WORK")

    def _ended_soon(self) -> Excluded:
        """Give a process that closed its ring the time to end."""
        self._continue()
        if select.select([self._end], [], [], _ENDS_WITHIN_S)[0]:
            self._reap(os.WEXITED)
            return self._ended()
        return Excluded("it closed its ring and kept running", code="E_PROTOCOL")

    def _ended(self) -> Excluded:
        code, status = self._status or (0, 0)
        if code == os.CLD_EXITED:
            return Excluded(f"its process exited with status {status} instead of answering", code="E_EXIT")
        try:
            name = signal.Signals(status).name
        except ValueError:
            name = f"signal {status}"
        return Excluded(f"its process was ended by {name}", code="E_CRASH")

    def _worked_s(self) -> float:
        """Return the CPU time of its threads, and that which they waited for, which is most on a busy machine."""
        try:
            cpu_s = time.clock_gettime(~self.pid << 3 | 2)  # what clock_getcpuclockid(3) gives on Linux
            threads = [each.read_text().split() for each in Path(f"/proc/{self.pid}/task").glob("*/schedstat")]
        except OSError:
            return 0.0
        return cpu_s + sum(int(waited_ns) for _, waited_ns, *_ in threads) / 1e9


def _environment(*, on_device: bool) -> dict[str, str]:
    names, begin = (_PASSED, _PASSED_BEGIN) if not on_device else (_OF_DEVICE, _OF_DEVICE_BEGIN)
    known = {name: value for name, value in os.environ.items() if name in names or name.startswith(begin)}
    return {**handed_on(known), "PYTHONDONTWRITEBYTECODE": "1"}
