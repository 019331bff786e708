"""Why a worker did not do what it was asked, told apart from how it ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from fairlap.errors import FairlapError, shortened
from fairlap.machine import control_group, counters
from fairlap.machine.root import THIS_MACHINE
from fairlap.worker.failure import line_telling_of_memory_under_a_limit, tells_of_memory
from fairlap.worker.protocol import Failed

LossOutcome = Literal["crash", "exit", "timeout", "protocol", "out_of_memory", "failed", "unsupported"]


_CODES: dict[LossOutcome, str] = {
    "crash": "E_CRASH",
    "exit": "E_EXIT",
    "timeout": "E_TIMEOUT",
    "protocol": "E_PROTOCOL",
    "out_of_memory": "E_MEMORY",
    "failed": "E_EXCEPTION",
    "unsupported": "E_UNSUPPORTED",
}


class WorkerLost(FairlapError):
    """The worker has ended, and so has every process that it started."""

    def __init__(
        self, outcome: LossOutcome, message: str, *, phase: str = "", details: str = "", code: str = ""
    ) -> None:
        super().__init__(message)
        self.outcome: LossOutcome = outcome
        self.code = code or _CODES[outcome]
        self.message = message
        self.phase = phase
        self.details = details  # a traceback, or the end of what it printed


@dataclass(frozen=True)
class OomKills:
    """How often the kernel ended a process for want of memory; a rise explains a SIGKILL."""

    counted: tuple[int, ...]

    def rose_since(self, before: OomKills) -> bool:
        return any(now > then for now, then in zip(self.counted, before.counted, strict=False))


def oom_kills() -> OomKills:
    """In the whole system, and in this process's control group."""
    return OomKills((counters.oom_kills(THIS_MACHINE), control_group.oom_kills()))


def told_failure(failed: Failed) -> WorkerLost:
    outcomes: dict[str, LossOutcome] = {"unsupported": "unsupported", "out_of_memory": "out_of_memory"}
    outcome = outcomes.get(failed.kind, "failed")
    message = failed.message if outcome == "unsupported" else f"{failed.message} (in {failed.phase})"
    return WorkerLost(outcome, message, phase=failed.phase, details=failed.traceback)


def ended(status: int, phase: str, printed: bytes, before: OomKills) -> WorkerLost:
    """From the status of a process that ended when nobody had asked it to: negative for a signal."""
    text = printed.decode("utf-8", "replace")
    last = _last_line(text)
    told = f"; it said last: {last}" if last else ""
    if status == -signal.SIGKILL and oom_kills().rose_since(before):
        return WorkerLost(
            "out_of_memory", f"the kernel killed it in {phase}: memory ran out", phase=phase, details=text
        )
    if status != 0 and tells_of_memory(text[-_WORDS_BEFORE_THE_END:]):
        return WorkerLost("out_of_memory", f"memory ran out in {phase}{told}", phase=phase, details=text)
    if status < 0:
        return WorkerLost("crash", f"it crashed with {_signal(-status)} in {phase}{told}", phase=phase, details=text)
    return WorkerLost("exit", f"it exited with status {status} in {phase}{told}", phase=phase, details=text)


def under_a_limit(lost: WorkerLost, limit_bytes: int | None) -> WorkerLost:
    """The same with the limit of memory named, where what it said or printed last tells that it needs more."""
    if limit_bytes is None or lost.outcome not in _MAY_COME_OF_A_LIMIT:
        return lost
    sign = line_telling_of_memory_under_a_limit(f"{lost.details[-_WORDS_BEFORE_THE_END:]}\n{lost.message}")
    if not sign and lost.outcome != "out_of_memory":
        return lost
    before = "" if sign in lost.message else f"; before that: {shortened(sign)}"
    message = f"it needs more than the limit of {limit_bytes:,} bytes: {lost.message}{before}"
    return WorkerLost("out_of_memory", message, phase=lost.phase, details=lost.details)


_MAY_COME_OF_A_LIMIT = ("failed", "crash", "exit", "out_of_memory")
_WORDS_BEFORE_THE_END = 4096


def _last_line(text: str) -> str:
    before_the_dump = text.partition("Fatal Python error")[0]
    lines = [line for line in before_the_dump.splitlines() if line.strip()]
    return shortened(lines[-1], 120) if lines else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
