"""Turn the result of a call into arrays, and find out whether the work was left for this moment."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.scenarios.calls.latency_messages import Reading, takes_suspiciously_long

if TYPE_CHECKING:
    from fairlap.frameworks.contract import Contestant
    from fairlap.models.arrays import Arrays

_LOOK_AT_ITEMS = 8
_MOST_TRIES = 8
_FEWEST_TRIES = 3
_LONGEST_TRIES_S = 2.0


def read_result(
    contestant: Contestant, call: Callable[[], Any] | None, result: Any, call_s: float
) -> tuple[Arrays, Reading]:
    """No arrays if the result is still to be computed.

    A reading that takes suspiciously long is repeated on the results of further calls, and the shortest one counts:
    on a busy machine a single one may have been interrupted. Without a ``call`` there are no further ones: a rank may
    make none that the others do not make.
    """
    if kind := deferred_type(result):
        return {}, Reading(kind)
    arrays, shortest = _read(contestant, call, result)
    began_s, tries = time.perf_counter(), 1
    while call is not None and takes_suspiciously_long(shortest, call_s) and contestant.device is None:
        if tries >= _MOST_TRIES or (tries >= _FEWEST_TRIES and time.perf_counter() - began_s > _LONGEST_TRIES_S):
            break
        again = call()
        if contestant.done is not None:
            contestant.done(again)
        reading = _read(contestant, call, again)[1]
        shortest = min(shortest, reading, key=lambda each: each.read_s)
        tries += 1
    if contestant.inputs_read is not None:
        contestant.inputs_read()
    return arrays, shortest


def _read(contestant: Contestant, call: Callable[[], Any] | None, result: Any) -> tuple[Arrays, Reading]:
    began_s = time.perf_counter()
    if call is None or contestant.outputs_of is None:
        arrays: Arrays = contestant.outputs(result)
    else:
        arrays = contestant.outputs_of(call, result)
    read_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    copies = {name: np.array(array) for name, array in arrays.items()}
    return copies, Reading(read_s=read_s, copy_s=time.perf_counter() - began_s)


def deferred_type(result: Any, depth: int = 2) -> str:
    """Find the type of anything in a result that stands for work still to be done; empty if there is none."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, list | tuple):
        found = (deferred_type(each, depth - 1) for each in result[:_LOOK_AT_ITEMS]) if depth else iter(())
        return next((kind for kind in found if kind), "")
    kind = type(result)
    is_function = inspect.isroutine(result) or isinstance(result, partial)
    waits = inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)
    is_future = all(hasattr(kind, name) for name in ("done", "result")) or (
        all(hasattr(kind, name) for name in ("get", "ready", "wait"))
    )
    return f"{kind.__module__}.{kind.__qualname__}" if is_function or waits or is_future else ""
