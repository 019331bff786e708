"""Callables that do the work."""

from __future__ import annotations

from typing import Any

from .prelude import NBYTES, Array, answer, checked, copy, cuda, memory, new_stream, stream, swapped


def enqueued(x: Any) -> Array:
    """Return before the device is done, as most libraries do."""
    return swapped(x, answer, stream)


def waited_for(x: Any) -> Array:
    found = swapped(x, answer, stream)
    checked(cuda.cuStreamSynchronize(stream))
    return found


def on_the_default_stream(x: Any) -> Array:
    return swapped(x, memory(NBYTES), None)


def behind_a_kernel(x: Any) -> Array:
    """Enqueue a kernel before it, on a stream that it makes for each call."""
    own = new_stream()
    checked(cuda.fake_cuda_kernel(own.value, b"before", 50_000))
    return swapped(x, answer, own)


def into_its_arguments(x: Any) -> Array:
    """Change what it was given, which is drawn for each call."""
    swapped(x, answer, stream)
    copy(x.__cuda_array_interface__["data"][0], answer, NBYTES, stream)
    result: Array = x
    return result
