"""How frameworks say that memory ran out, in exceptions of general types and before they abort."""

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


def tells_of_memory(text: str) -> bool:
    return any(words in text for words in _WORDS)
