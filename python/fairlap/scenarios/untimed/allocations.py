"""Count what a call of a contestant allocates, once its calls have been timed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from statistics import median
from typing import Any

from fairlap.errors import NotAvailable, described
from fairlap.meters.allocations import LIBRARY, Allocations
from fairlap.scenarios.held import Held
from fairlap.scenarios.untimed.allocations_messages import AllocationsCounted, CountAllocations

_CALLS = 9


def serve(held: Held, _request: CountAllocations) -> tuple[AllocationsCounted, tuple[()]]:
    """Whatever it raises is the reason why they are unknown: all that is timed has been timed."""
    if held.elsewhere:
        return AllocationsCounted(why=held.elsewhere), ()
    done = held.contestant.done
    call = held.contestant.bind(held.sets[0])
    try:
        return AllocationsCounted(allocations_of(call if done is None else lambda: done(call()))), ()
    except (Exception, SystemExit) as error:
        return AllocationsCounted(why=described(error)), ()


def allocations_of(call: Callable[[], Any]) -> Allocations:
    """Count in several calls, after one that may allocate what later ones keep."""
    loaded = ctypes.CDLL(None)
    try:
        begin, end = loaded.fairlap_begin_to_count_allocations, loaded.fairlap_end_counting_allocations
    except AttributeError:
        raise NotAvailable(f"{LIBRARY.name} was not loaded into this process, so it cannot count") from None
    begin.restype, end.restype = None, None
    number, size = ctypes.c_uint64(), ctypes.c_uint64()
    into = ctypes.byref(number), ctypes.byref(size)
    counted = []
    call()
    for _ in range(_CALLS):
        begin()
        call()
        end(*into)
        counted.append((number.value, size.value))
    return Allocations(median(each for each, _ in counted), median(each for _, each in counted))
