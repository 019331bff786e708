"""What checking the answers of callables costs: its share of the time of comparisons, of several sizes and endings.

Both times are of one run, so a busy machine slows both. A table in Markdown; the last column has the calls of each
callable that were checked, of which so many were timed ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import fairlap
import numpy as np
from fairlap import quantity_text
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.answers.looks import Looks

SIZES = (1_000, 100_000, 10_000_000)
ENDINGS: Mapping[str, Mapping[str, Any]] = {
    "until decided": {},
    "`--target 2%`": {"target": 0.02},
    "`--seconds 20ms --budget 10s`": {"seconds": 0.02, "budget": 10.0},
    "`--blocks 1000 --budget 10s`": {"blocks": 1000, "budget": 10.0},
}
CHECKS = ("check_first", "drawn_for", "in_turn", "look_back", "check_between", "check_last")
READ_BETWEEN_CALLS = ("given", "take")


class Stopwatch:
    """The time inside of some methods, which do not call each other."""

    def __init__(self) -> None:
        self.seconds = self.first_s = 0.0
        for name in CHECKS:
            setattr(Answers, name, self._timed(getattr(Answers, name)))
        for name in READ_BETWEEN_CALLS:
            setattr(Looks, name, self._timed(getattr(Looks, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                took_s = time.perf_counter() - began_s
                self.seconds += took_s
                self.first_s += took_s if method.__name__ == "check_first" else 0.0

        return timed


def exact(a: Any, b: Any) -> Any:
    return a * b + a


def in_place(a: Any, b: Any) -> Any:
    found = a * b
    found += a
    return found


def with_a_pass_more(a: Any, b: Any) -> Any:
    found = a * b
    found = found + a
    return found + 0


def line(watch: Stopwatch, size: int, ending: str) -> str:
    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        return rng.random(size, dtype=np.float32), rng.random(size, dtype=np.float32)

    watch.seconds = watch.first_s = 0.0
    callables = {"in place": in_place, "a pass more": with_a_pass_more}
    began_s = time.perf_counter()
    found = fairlap.compare(callables, reference=exact, inputs=draw, **ENDINGS[ending])
    whole_s = time.perf_counter() - began_s
    assert not found.answers.wrong
    share, first = (quantity_text.share(each / whole_s) for each in (watch.seconds, watch.first_s))
    checked = f"{found.answers.checked_calls}, {found.answers.timed_calls}"
    return f"| {size:,} | {ending} | {quantity_text.seconds(whole_s)} | {share} | {first} | {checked} |"


def main() -> None:
    watch = Stopwatch()
    fairlap.compare({"a": time.time, "b": time.time_ns}, budget=0.1, any_answers=True)  # imports what is imported late
    print("| numbers | ends | whole | checks | those before the first block | calls checked, timed |")
    print("| --- | --- | --- | --- | --- | --- |")
    for size in SIZES:
        for ending in ENDINGS:
            print(line(watch, size, ending), flush=True)


if __name__ == "__main__":
    main()
