"""How much longer first calls on new arguments take than calls on two that come again, of callables with short calls.

A new call among the timed ones is alone, and that costs up to two microseconds, behind which answers that short calls
keep are hidden. Here many are timed together, outside of the timed calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.engine.native_functions import native_function_of
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import leaves_of_argument, leaves_of_arguments
from fairlap.scenarios.callables.answers.right_answers.in_chunks import read

_MOST_CALLS, _FEWEST_CALLS, _PASSES = 16, 4, 5
_MOST_BYTES = 128 * 1024  # of so many calls' arguments: they stay in the caches, and answers need no new pages
_SHORT_NS = 20_000.0  # longer calls show what they keep where they are alone
_SHORTEST_NS = 1_000.0  # on larger arguments: too short to read them, so what the caches hold does not matter
_TAKEN = 2048
_KEEP_THEIR_HASH = ("str", "bytes")

DRAWN = 2 + _PASSES * _MOST_CALLS


def times_longer_when_new(each: Checked, usual_ns: float, draw: Callable[[], Arguments]) -> float | None:
    """Compare the shortest passes; None where calls raise or are long, as the usual ones among the timed show.

    None, too, where arguments are no arrays: a text, for one, keeps its hash itself.
    """
    if usual_ns >= _SHORT_NS or native_function_of(each.fn) is not None:
        return None
    known = [draw(), draw()]
    nbytes = sum(leaf.values.nbytes for leaf in leaves_of_arguments(known[0]).values())
    calls = min(max(_MOST_BYTES // max(nbytes, 1), _FEWEST_CALLS), _MOST_CALLS)
    if not _are_arrays(known[0]) or (calls < _MOST_CALLS and usual_ns >= _SHORTEST_NS):
        return None
    alive, new_ns, again_ns = [*_taken_addresses(known[0]), *known], [], []
    try:
        with np.errstate(all="ignore"):
            for _ in range(_PASSES):
                fresh = [draw() for _ in range(calls)]
                alive += fresh
                for arguments in fresh:
                    for leaf in leaves_of_arguments(arguments).values():
                        read(leaf.values)
                _pass_ns(each, known)
                new_ns.append(_pass_ns(each, fresh))
                known = fresh[-2:]
                again_ns.append(_pass_ns(each, (known * calls)[:calls]))
    except (Exception, SystemExit):
        return None
    return min(new_ns) / min(again_ns)


def _taken_addresses(arguments: Arguments) -> list[Any]:
    """Take the addresses of arrays that are gone, which a callable may know from them: new arrays get others then."""
    taken = []
    for value in (*arguments.args, *arguments.kwargs.values()):
        with suppress(Exception):
            taken += [value[:0] for _ in range(_TAKEN)]
    return taken


def _are_arrays(arguments: Arguments) -> bool:
    given = (*enumerate(arguments.args), *arguments.kwargs.items())
    leaves = [leaves_of_argument(key, value) for key, value in given]
    if any(leaf.kind in _KEEP_THEIR_HASH for each in leaves for leaf in each.values()):
        return False
    return any(leaves) and all(
        each or isinstance(value, Number) for each, (_, value) in zip(leaves, given, strict=True)
    )


def _pass_ns(each: Checked, of: Sequence[Arguments]) -> int:
    fn, done = each.fn, each.done
    calls = [(arguments.args, arguments.kwargs) for arguments in of]
    began_ns = time.perf_counter_ns()
    if done is None:
        for args, kwargs in calls:
            fn(*args, **kwargs)
    else:
        for args, kwargs in calls:
            done(fn(*args, **kwargs))
    return time.perf_counter_ns() - began_ns
