"""Slow a contestant down on purpose, ``torch:slowdown=2%``, to test whether fairlap detects such a difference here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import update_wrapper
from typing import Any

from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.models.arrays import Arrays

OPTION = "slowdown"


def slowdown_in(options: dict[str, str]) -> float:
    """Remove the option, which no framework knows, and return its share: 0.02 for "2%"."""
    text = options.pop(OPTION, "0")
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 100:
        raise Unsupported(f"{OPTION}={text} is not a share such as 2% or 0.02")
    return share


def slowed(contestant: Contestant, share: float, device: str = "cpu") -> Contestant:
    """Follow every completed call by a wait of this share of its time."""
    if share == 0:
        return contestant
    if device != "cpu":
        raise Unsupported(f"{OPTION}= waits on the CPU and cannot slow down the work of a device")

    def bind(inputs: Arrays) -> Callable[[], Any]:
        return _slower(contestant.bind(inputs), contestant.done, share)

    note = f"{100 * share:g} % added to every call on purpose"
    in_force = {**contestant.in_force, OPTION: note}
    return replace(contestant, bind=bind, bind_new=None, done=None, fed=None, rebind=None, in_force=in_force)


def _slower(call: Callable[[], Any], done: Callable[[Any], Any] | None, share: float) -> Callable[[], Any]:
    now_ns = time.perf_counter_ns

    def slower() -> Any:
        began_ns = now_ns()
        result = call()
        if done is not None:
            done(result)
        ended_ns = now_ns()
        until_ns = ended_ns + share * (ended_ns - began_ns)
        while now_ns() < until_ns:
            pass
        return result

    return update_wrapper(slower, call, assigned=())  # with what its adapter knows it by
