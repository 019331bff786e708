"""How a worker reports the exception that ended its work, and the signs by which running out of memory is recognised.

Frameworks and libraries report a lack of memory in exceptions of general types, or print it before they abort.
"""

from __future__ import annotations

import errno
import traceback

from fairlap.engine.measurement import CallableRaised
from fairlap.errors import FairlapError, described, detail_of, shortened
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.worker.protocol import Failed, FailureKind

_SIGNS = (
    "RESOURCE_EXHAUSTED",
    "DefaultCPUAllocator: can't allocate memory",
    "std::bad_alloc",
    "bad allocation",
    "Cannot allocate memory",
    "CUDA out of memory",
    "MemoryError",
)
_SIGNS_UNDER_A_LIMIT = (  # in lower case; without a memory limit they can have other causes
    "cannot allocate memory",
    "can't allocate memory",
    "unable to allocate",
    "failed to allocate",
    "out of memory",
    "not enough memory",
    "failed to map segment",
    "thread creation failed",
    "pthread_create failed",
    "can't start new thread",
    "resource temporarily unavailable",  # for the stack of a thread
)
_UNRELATED = "cannot allocate memory in static tls block"  # a table of fixed size is full


def reports_memory(text: str) -> bool:
    return any(sign in text for sign in _SIGNS)


def last_sign_of_lacking_memory(text: str) -> str:
    """Find the last line that reports a lack of memory under a limit; empty if there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if _reports_memory_under_a_limit(line)), "")


def _reports_memory_under_a_limit(line: str) -> bool:
    lower = line.lower().replace(_UNRELATED, "")
    return reports_memory(line) or any(sign in lower for sign in _SIGNS_UNDER_A_LIMIT)


_MOST_TRACEBACK = 8192
_MOST_MESSAGE = 400
_MEMORY_CLASSES = ("OutOfMemoryError", "ResourceExhaustedError")


class FailedElsewhere(Exception):
    """What another process of this worker's reported as its last message."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


def failure(phase: str, error: BaseException) -> Failed:
    if isinstance(error, CallableRaised) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, FailedElsewhere):
        return error.failed
    kind = kind_of(error)
    if isinstance(error, ContestantFailed) and kind == "exception":
        return Failed(phase, kind, shortened(str(error), _MOST_MESSAGE), error.printed, error.reported)
    message = shortened(str(error), _MOST_MESSAGE) if kind == "unsupported" else _message(error)
    return Failed(phase, kind, message, _traceback(error))


def kind_of(error: BaseException) -> FailureKind:
    if isinstance(error, Unsupported):
        return "unsupported"
    return "out_of_memory" if _is_lack_of_memory(error) or _memory_error_behind(error) else "exception"


def _message(error: BaseException) -> str:
    """fairlap's own advice, to take fewer samples or slots, does not apply to a race, so its cause is shown instead."""
    lack = _memory_error_behind(error)
    if lack is None:
        return shortened(str(error), _MOST_MESSAGE) if isinstance(error, FairlapError) else detail_of(error)
    return described(lack) if isinstance(error, FairlapError) else f"{described(error)}; caused by {described(lack)}"


def _memory_error_behind(error: BaseException) -> BaseException | None:
    """Find the MemoryError in its chain of causes and contexts, suppressed ones included."""
    seen = {id(error)}
    behind = error.__cause__ or error.__context__
    while behind is not None and id(behind) not in seen:
        if isinstance(behind, MemoryError):
            return behind
        seen.add(id(behind))
        behind = behind.__cause__ or behind.__context__
    return None


def _is_lack_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if any(kind.__name__ in _MEMORY_CLASSES for kind in type(error).__mro__):
        return True
    try:
        return reports_memory(str(error)[:_MOST_TRACEBACK])
    except Exception:  # its own text raises
        return False


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-_MOST_TRACEBACK:]
    except Exception:  # its own text raises, or no memory is left for it
        return ""
