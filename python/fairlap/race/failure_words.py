"""How frameworks, libraries and the system say that memory ran out, in exceptions of general types and before they
abort."""

from __future__ import annotations

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
