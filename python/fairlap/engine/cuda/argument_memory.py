"""The memory behind arguments: arrays and tensors of any framework show their addresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Memory = tuple[int, int] | int
"""The first address and the one after the last, or the identity of an object that shows no address."""


def memory_of(argument: object) -> Memory:
    size, address = _size_of(argument), _address_of(argument)
    return id(argument) if address is None else (address, address + size)


def memory_behind(arguments: Iterable[object]) -> int:
    """Add up the bytes behind arguments; what several of them share counts once."""
    without_address: dict[int, int] = {}
    spans = []
    for argument in arguments:
        memory = memory_of(argument)
        if isinstance(memory, int):
            without_address[memory] = _size_of(argument)
        else:
            spans.append(memory)
    total, reached = sum(without_address.values()), 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _size_of(argument: object) -> int:
    size = getattr(argument, "nbytes", 0)
    return size if isinstance(size, int) else 0


def _address_of(argument: object) -> int | None:
    """Of PyTorch's tensors by their own method, since one that needs a gradient has no array interface."""
    known: Any = argument
    try:
        if callable(getattr(known, "data_ptr", None)):
            return int(known.data_ptr())
        interface = getattr(known, "__cuda_array_interface__", None) or getattr(known, "__array_interface__", None)
        return None if interface is None else int(interface["data"][0])
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
        return None
