"""How a worker reports the exception that ended its work."""

from __future__ import annotations

import traceback

from fairlap.engine.measurement import CallableRaised
from fairlap.errors import FairlapError, described, detail_of, shortened
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.machine.lack_of_memory import is_lack_of_memory, memory_error_behind
from fairlap.worker.protocol import Failed, FailureKind

_MOST_TRACEBACK = 8192
_MOST_MESSAGE = 400


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
    return "out_of_memory" if is_lack_of_memory(error) or memory_error_behind(error) else "exception"


def _message(error: BaseException) -> str:
    """fairlap's own advice, to take fewer samples or slots, does not apply to a race, so its cause is shown instead."""
    lack = memory_error_behind(error)
    if lack is None:
        return shortened(str(error), _MOST_MESSAGE) if isinstance(error, FairlapError) else detail_of(error)
    return described(lack) if isinstance(error, FairlapError) else f"{described(error)}; caused by {described(lack)}"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-_MOST_TRACEBACK:]
    except Exception:  # its own text raises, or no memory is left for it
        return ""
