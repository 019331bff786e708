"""What C functions compute, compared before they race: the arrays that they were given, and what they return."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.engine.c_functions import CFunction, loaded, signature_of
from fairlap.engine.native_functions import run_native
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.scenarios.callables.answers.result import AnswersChecked

_RETURNED = b"fairlap: it has returned"
_ROUNDED = 16.0  # times the rounding of as many operations as the largest array has elements


class DifferentAnswers(FairlapError):
    """Two C functions do not compute the same."""

    code = "E_OUTPUT"


def functions_with_equal_answers(names: Sequence[str], arguments: str, *, any_answers: bool) -> dict[str, Any]:
    """Load each, call it once, and compare what it computes with what the first one does: native functions by name.

    A function that crashes is found in a process of its own, before it could end this one.
    """
    signature = signature_of(arguments)
    functions = {name: loaded(name, signature) for name in names}
    first = names[0]
    for name in names:
        _require_no_crash(name, arguments)
    others = [] if any_answers else names[1:]
    right = _answer(loaded(first, signature)) if others else {}
    for name in others:
        if why := _difference(right, _answer(loaded(name, signature))):
            raise DifferentAnswers(
                f"{name} computes something else than {first}: {why}; --any-answers races them all the same"
            )
    return {name: each.native for name, each in functions.items()}


def answers_checked(arguments: str) -> AnswersChecked:
    """Say what was compared of functions that passed."""
    if signature_of(arguments).shows_answers:
        return AnswersChecked("each other", checked_calls=1)
    return AnswersChecked("not", why_not="--args has no array and no type of what they return, as `f64:0.5->f64` has")


def _require_no_crash(name: str, arguments: str) -> None:
    """Call it in a process of its own."""
    command = [sys.executable, "-P", "-m", "fairlap.scenarios.callables.c_answers", name, arguments]
    found = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if found.returncode < 0:
        how = signal.Signals(-found.returncode).name
        raise InvalidRequest(f"{name} ends its process with {how} on these arguments; check --args", code="E_CRASH")
    if _RETURNED not in found.stdout:
        raise InvalidRequest(f"{name} ends its process with exit status {found.returncode}", code="E_CRASH")


def _answer(function: CFunction) -> dict[str, np.ndarray]:
    run_native(function.native.address, function.native.context)
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


if __name__ == "__main__":
    _, name, arguments = sys.argv
    _answer(loaded(name, signature_of(arguments)))
    print(_RETURNED.decode(), flush=True)
