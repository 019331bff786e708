"""What C functions compute, compared before they race: the arrays that they were given, and what they return."""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.engine.c_functions import CFunction, Signature, loaded
from fairlap.errors import FairlapError, InvalidRequest

_ROUNDED = 16.0  # times the rounding of as many operations as the largest array has elements


class DifferentAnswers(FairlapError):
    """Two C functions do not compute the same."""

    code = "E_OUTPUT"


def functions_with_equal_answers(names: Sequence[str], signature: Signature, *, any_answers: bool) -> dict[str, Any]:
    """Load each, call it once, and compare what it computes with what the first one does: native functions by name.

    A function that crashes is found in a process of its own, before it could end this one.
    """
    functions = {name: loaded(name, signature) for name in names}
    first, *_ = names
    for name in names:
        _require_no_crash(name, functions[name])
    answers = {name: _answer(loaded(name, signature)) for name in names}
    for name in names[1:]:
        why = "" if any_answers else _difference(answers[first], answers[name])
        if why:
            raise DifferentAnswers(
                f"{name} computes something else than {first}: {why}; --any-answers races them all the same"
            )
    return {name: each.native for name, each in functions.items()}


def _call(function: CFunction) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function.native.address)(function.native.context)


def _require_no_crash(name: str, function: CFunction) -> None:
    """Call it in a copy of this process; it may change its arrays there."""
    child = os.fork()
    if child == 0:  # pragma: no cover  (of another process)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        faulthandler.disable()  # which would print every thread
        _call(function)
        os._exit(0)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if os.WIFSIGNALED(status):
        how = signal.Signals(os.WTERMSIG(status)).name
        raise InvalidRequest(f"{name} ends its process with {how} on these arguments; check --args", code="E_CRASH")
    if code := os.waitstatus_to_exitcode(status):
        raise InvalidRequest(f"{name} ends its process with exit status {code}", code="E_CRASH")


def _answer(function: CFunction) -> dict[str, np.ndarray]:
    _call(function)
    found = {f"array {place}": each for place, each in enumerate(function.arrays, 1)}
    if function.returned is not None:
        found["what is returned"] = np.array([function.returned])
    return found


def _difference(right: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray]) -> str:
    operations = math.sqrt(max((each.size for each in right.values()), default=1))
    narrowest = max((_rounding(each) for each in right.values()), default=0.0)
    for what, own in got.items():
        there = right[what]
        largest = float(np.max(np.abs(there), initial=0.0, where=np.isfinite(there)))
        allowed = _ROUNDED * operations * narrowest * largest if _rounding(there) else 0.0
        with np.errstate(all="ignore"):
            off = ~((np.abs(own - there) <= allowed) | (own == there) | (np.isnan(own) & np.isnan(there)))
        if off.any():
            place = int(np.argmax(off))
            where = "" if what == "what is returned" else f" has at {place}"
            return f"{what}{where or ' is'} {own[place]:.9g} instead of {there[place]:.9g}"
    return ""


def _rounding(array: np.ndarray) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
