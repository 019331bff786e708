"""The regime in which calls are timed on a GPU: rested before each turn, or loaded until its clock is steady.

Under load, the power limit and the temperature lower the clock within seconds, so a figure belongs to its regime.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest, shown
from fairlap.request.fields.device_conditions import RegimeKind

KINDS = ("burst", "sustained")
NOT_STEADY = "W_CLOCK_NOT_STEADY"
_REST_S = 0.5  # before a turn of at most a twentieth of a second
_LEAST_LOAD_S, _MOST_LOAD_S = 3.0, 60.0
_WINDOW_S = 1.0
_STEADY_WITHIN = 0.01
A_WHILE_S = 0.05
"""Of load, or of a burst."""


def regime_named(name: object, *, on_stream: bool) -> Regime:
    """Refuse a name that is not known, and a regime where nothing is timed on a stream."""
    if name is None or (isinstance(name, str) and not name):
        return Regime("")
    if not isinstance(name, str) or name not in KINDS:
        raise InvalidRequest(f"regime must be one of {', '.join(KINDS)} (got {shown(name)})")
    if not on_stream:
        raise InvalidRequest("a regime is for calls on a stream of a GPU; leave it out, or time on one")
    return Regime("burst" if name == "burst" else "sustained")


class Regime:
    """The empty kind neither rests nor loads. ``text`` is part of the figure."""

    def __init__(self, kind: RegimeKind) -> None:
        self.kind = kind
        self.notices: tuple[Notice, ...] = ()
        self._loaded_s = 0.0
        self._mhz: float | None = None

    @property
    def text(self) -> str:
        if self.kind == "burst":
            return f"burst, after {quantity_text.seconds(_REST_S)} of rest"
        if self.kind == "sustained":
            at = "" if self._mhz is None else f" at {self._mhz:.0f} MHz"
            return f"sustained, after {quantity_text.seconds(self._loaded_s)} of load{at}"
        return ""

    def before_turn(self) -> None:
        if self.kind == "burst":
            time.sleep(_REST_S)

    def resume(self, work_a_while: Callable[[], float | None]) -> None:
        """Rest once more; or load until the clock is what it was under the load before, for three seconds at most."""
        self.before_turn()
        if self.kind != "sustained":
            return
        until_s = time.perf_counter() + _LEAST_LOAD_S
        mhz = work_a_while()
        while mhz is not None and self._mhz is not None and time.perf_counter() < until_s:
            if abs(mhz / self._mhz - 1) <= _STEADY_WITHIN:
                return
            mhz = work_a_while()

    def load(self, work_a_while: Callable[[], float | None]) -> None:
        """Load the GPU until its clock is steady, or for a while where it is not known.

        ``work_a_while`` works for a fraction of a second and returns the clock in MHz.
        """
        if self.kind != "sustained":
            return
        began_s, seen = time.perf_counter(), list[tuple[float, float]]()
        while self._loaded_s < _MOST_LOAD_S:
            mhz = work_a_while()
            self._loaded_s = time.perf_counter() - began_s
            if mhz is not None:
                self._mhz = mhz
                seen.append((self._loaded_s, mhz))
            if self._loaded_s >= _LEAST_LOAD_S and (not seen or _is_steady(seen)):
                return
        text = f"after {quantity_text.seconds(self._loaded_s)} of load the clock of the GPU was not steady"
        self.notices = (Notice(NOT_STEADY, text),)


def _is_steady(seen: list[tuple[float, float]]) -> bool:
    """Whether the clock of the last window is that of the window before."""
    now_s, _ = seen[-1]
    recent = [mhz for at_s, mhz in seen if at_s > now_s - _WINDOW_S]
    before = [mhz for at_s, mhz in seen if now_s - 2 * _WINDOW_S < at_s <= now_s - _WINDOW_S]
    if not before:
        return False
    ratio = (sum(recent) / len(recent)) / (sum(before) / len(before))
    return abs(ratio - 1) <= _STEADY_WITHIN
