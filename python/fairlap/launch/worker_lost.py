"""Why a worker did not answer a request, derived from how it ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from fairlap import quantity_text
from fairlap.errors import FairlapError, shortened
from fairlap.machine import control_group
from fairlap.machine.hardware import counters
from fairlap.machine.lack_of_memory import last_sign_of_lacking_memory, reports_memory
from fairlap.machine.root import THIS_MACHINE
from fairlap.worker.protocol import Failed

LossOutcome = Literal["crash", "exit", "timeout", "protocol", "out_of_memory", "failed", "unsupported", "disqualified"]


_CODES: dict[LossOutcome, str] = {
    "crash": "E_CRASH",
    "exit": "E_EXIT",
    "timeout": "E_TIMEOUT",
    "protocol": "E_PROTOCOL",
    "out_of_memory": "E_MEMORY",
    "failed": "E_EXCEPTION",
    "unsupported": "E_UNSUPPORTED",
    "disqualified": "E_OUTPUT",
}


_PHASES = {
    "interpreter": "the start of Python",
    "numpy": "the import of NumPy",
    "fairlap": "the import of fairlap",
    "import": "the import of the framework",
}
"""In sentences, where the name of a phase alone would say nothing."""

_OTHER_WORK = ("E_ARGUMENT_CHANGED", "E_OUTPUT")  # than was asked for


class WorkerLost(FairlapError):
    """The worker has ended, and so has every process that it started."""

    def __init__(
        self, outcome: LossOutcome, message: str, *, phase: str = "", details: str = "", code: str = ""
    ) -> None:
        super().__init__(message, code=code or _CODES[outcome])
        self.outcome: LossOutcome = outcome
        self.message = message
        self.phase = phase
        self.details = details  # a traceback, or the end of what it printed


@dataclass(frozen=True)
class OomKills:
    """How often the kernel killed a process because memory ran out; an increase explains a SIGKILL."""

    counted: tuple[int, ...]

    def rose_since(self, before: OomKills) -> bool:
        return any(now > then for now, then in zip(self.counted, before.counted, strict=False))


def oom_kills() -> OomKills:
    """In the whole system, and in this process's control group."""
    return OomKills((counters.oom_kills(THIS_MACHINE), control_group.oom_kills()))


def reported_failure(failed: Failed) -> WorkerLost:
    outcomes: dict[str, LossOutcome] = {"unsupported": "unsupported", "out_of_memory": "out_of_memory"}
    outcome = "disqualified" if failed.code in _OTHER_WORK else outcomes.get(failed.kind, "failed")
    message = failed.message if outcome == "unsupported" else f"{failed.message} (in {failed.phase})"
    return WorkerLost(outcome, message, phase=failed.phase, details=failed.traceback, code=failed.code)


def loss_from_status(
    status: int, phase: str, printed: bytes, before: OomKills, held_bytes: int | None = None
) -> WorkerLost:
    """Classify a process that ended before it was asked to. A negative status is a signal.

    ``held_bytes`` is the most memory that it held, where that is known.
    """
    text = printed.decode("utf-8", "replace")
    outcome: LossOutcome
    if status == -signal.SIGKILL and oom_kills().rose_since(before):
        outcome, message, last = "out_of_memory", f"the kernel killed it in {phase} because memory ran out", ""
        if held_bytes is not None:
            message += f"; it held up to {quantity_text.size(held_bytes)}"
    else:
        last = _last_line(text)
        if status != 0 and reports_memory(text[-_LAST_CHARACTERS:]):
            outcome, message = "out_of_memory", f"memory ran out in {phase}"
        elif status == -signal.SIGKILL:
            where = _PHASES.get(phase, phase)
            outcome = "crash"
            message = f"it was killed from outside (SIGKILL) in {where}; the kernel reports no lack of memory"
        elif status < 0:
            outcome, message = "crash", f"it crashed with {_signal(-status)} in {_PHASES.get(phase, phase)}"
        else:
            outcome, message = "exit", f"it exited with status {status} in {phase}"
    return WorkerLost(outcome, message + (f"; last output: {last}" if last else ""), phase=phase, details=text)


def under_a_limit(lost: WorkerLost, limit_bytes: int | None) -> WorkerLost:
    """Classify a loss under a memory limit: if the last output reports a lack of memory, name the limit."""
    if limit_bytes is None or lost.outcome not in _POSSIBLY_CAUSED_BY_LIMIT:
        return lost
    sign = last_sign_of_lacking_memory(f"{lost.details[-_LAST_CHARACTERS:]}\n{lost.message}")
    if not sign and lost.outcome != "out_of_memory":
        return lost
    cause = "" if sign in lost.message else f"; caused by: {shortened(sign)}"
    message = f"it needs more than the memory limit of {limit_bytes:,} bytes: {lost.message}{cause}"
    return WorkerLost("out_of_memory", message, phase=lost.phase, details=lost.details)


_POSSIBLY_CAUSED_BY_LIMIT = ("failed", "crash", "exit", "out_of_memory")
_LAST_CHARACTERS = 4096


def _last_line(text: str) -> str:
    before_the_dump = text.partition("Fatal Python error")[0]
    lines = [line for line in before_the_dump.splitlines() if line.strip()]
    return shortened(lines[-1], 120) if lines else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
