"""The signs by which running out of memory is recognised.

Frameworks and libraries report it in exceptions of general types, or print it before they abort.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

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
_CLASSES = ("OutOfMemoryError", "ResourceExhaustedError")
_MOST_READ = 8192


def reports_memory(text: str) -> bool:
    return any(sign in text for sign in _SIGNS)


def last_sign_of_lacking_memory(text: str) -> str:
    """Find the last line that reports a lack of memory under a limit; empty if there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if _reports_memory_under_a_limit(line)), "")


def _reports_memory_under_a_limit(line: str) -> bool:
    lower = line.lower().replace(_UNRELATED, "")
    return reports_memory(line) or any(sign in lower for sign in _SIGNS_UNDER_A_LIMIT)


def is_lack_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if any(kind.__name__ in _CLASSES for kind in type(error).__mro__):
        return True
    try:
        return reports_memory(str(error)[:_MOST_READ])
    except Exception:  # its own text raises
        return False


def memory_error_behind(error: BaseException) -> BaseException | None:
    """Find the MemoryError in its chain of causes and contexts, suppressed ones included."""
    return next((each for each in _behind(error) if isinstance(each, MemoryError)), None)


def lack_of_memory_in(error: BaseException) -> BaseException | None:
    """Find what reports it, the error itself or one behind it; the first one knows how much was asked for."""
    found = [each for each in (error, *_behind(error)) if is_lack_of_memory(each)]
    return found[-1] if found else None


def _behind(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    behind = error.__cause__ or error.__context__
    while behind is not None and id(behind) not in seen:
        yield behind
        seen.add(id(behind))
        behind = behind.__cause__ or behind.__context__
