"""What a worker says of an exception that ended its work.

How frameworks, libraries and the system say that memory ran out, in exceptions of general types and before they
abort.
"""

from __future__ import annotations

import errno
import traceback

from fairlap.errors import CallableRaised, FairlapError, described, shortened
from fairlap.frameworks.contract import Unsupported
from fairlap.worker.protocol import Failed, FailureKind

_WORDS = (
    "RESOURCE_EXHAUSTED",
    "DefaultCPUAllocator: can't allocate memory",
    "std::bad_alloc",
    "bad allocation",
    "Cannot allocate memory",
    "CUDA out of memory",
    "MemoryError",
)
_WORDS_UNDER_A_LIMIT = (  # they can have other causes, where memory is not limited; in small letters
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
    "resource temporarily unavailable",  # no room for the stack of a thread
)
_NOT_OF_MEMORY = "cannot allocate memory in static tls block"  # a table of fixed size is full


def tells_of_memory(text: str) -> bool:
    return any(words in text for words in _WORDS)


def line_telling_of_memory_under_a_limit(text: str) -> str:
    """The last such line; empty when none tells of it."""
    return next((line.strip() for line in reversed(text.splitlines()) if _tells_under_a_limit(line)), "")


def _tells_under_a_limit(line: str) -> bool:
    small = line.lower().replace(_NOT_OF_MEMORY, "")
    return tells_of_memory(line) or any(words in small for words in _WORDS_UNDER_A_LIMIT)


_MOST_TRACEBACK = 8192
_MOST_MESSAGE = 400
_MEMORY_CLASSES = ("OutOfMemoryError", "ResourceExhaustedError")


def failure(phase: str, error: BaseException) -> Failed:
    if isinstance(error, CallableRaised) and error.__cause__ is not None:
        error = error.__cause__
    kind = kind_of(error)
    message = shortened(str(error), _MOST_MESSAGE) if kind == "unsupported" else _told(error)
    return Failed(phase, kind, message, _traceback(error))


def kind_of(error: BaseException) -> FailureKind:
    if isinstance(error, Unsupported):
        return "unsupported"
    return "out_of_memory" if _is_want_of_memory(error) or _memory_error_behind(error) else "exception"


def _told(error: BaseException) -> str:
    """fairlap's own words advise someone who chose the number of samples or slots, which nobody did in a race."""
    lack = _memory_error_behind(error)
    if lack is None:
        return described(error)
    return described(lack) if isinstance(error, FairlapError) else f"{described(error)}; it came of {described(lack)}"


def _memory_error_behind(error: BaseException) -> BaseException | None:
    """What it was raised from, or while it was handled, also where that is not shown."""
    seen = {id(error)}
    behind = error.__cause__ or error.__context__
    while behind is not None and id(behind) not in seen:
        if isinstance(behind, MemoryError):
            return behind
        seen.add(id(behind))
        behind = behind.__cause__ or behind.__context__
    return None


def _is_want_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if any(kind.__name__ in _MEMORY_CLASSES for kind in type(error).__mro__):
        return True
    try:
        return tells_of_memory(str(error)[:_MOST_TRACEBACK])
    except Exception:  # a text that raises tells nothing
        return False


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-_MOST_TRACEBACK:]
    except Exception:  # an exception whose own text raises, or no memory left for the text
        return ""
