"""The answers of callables that are compared: checked before they are timed, and at drawn calls among the timed ones.

Reference, inputs and checks take a small share of the time, and none of it is inside a timed call.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments, DrawnTurns, InTurn
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest, described
from fairlap.scenarios.callables.answers.arrays import Deferred, Leaves, NotComparable, are_equal, leaves_of
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw, copy_of, leaves_of_arguments
from fairlap.scenarios.callables.answers.restoring import can_restore, restoring, with_originals
from fairlap.scenarios.callables.answers.result import AnswersChecked, Compared
from fairlap.scenarios.callables.answers.truth import (
    DrawsNumbers,
    Outcome,
    Truth,
    outcome_of,
    outcome_on,
    require_no_drawing,
    truth_of,
)
from fairlap.scenarios.callables.answers.wrong import why_outcome_wrong

_SETS = 2  # of arguments that take turns in the timed calls
_FIRST, _MOST_FIRST = 2, 8  # calls on other arguments each that are checked before
_REPEATED = 240  # calls that are checked at most before: one wrong one in sixty is among them, but for 2 %
_SHARE_OF_TIME = 0.05
_FEWEST_NEW = 6
_QUICK_S = 0.02
_TIMES_LONGER = 10.0  # on arguments that occur for the first time, but are in the caches
_LONGER_NS = 2_000.0


@dataclass
class _Seen:
    """Of one callable: its checked calls, and how long those on new arguments took beside the usual ones."""

    checked: int = 0
    timed: int = 0
    new_ns: list[float] = field(default_factory=list)
    usual_ns: list[float] = field(default_factory=list)
    last: Leaves = field(default_factory=dict)


@dataclass
class _Look:
    """A drawn call among the timed ones."""

    callable: Checked
    place: int
    given: Arguments
    returned: Any = None
    leaves: Leaves = field(default_factory=dict)
    failure: Exception | None = None
    ns: float = 0.0


class Answers:
    """Those of one comparison. ``reference`` is None to compare them with the first callable's."""

    def __init__(
        self,
        callables: Sequence[Checked],
        draw: Draw,
        reference: Checked | None,
        *,
        wanted: bool = True,
        repeating_s: float = 0.0,
    ) -> None:
        self.wrong: dict[str, Notice] = {}
        self.notices: dict[str, list[Notice]] = {each.name: [] for each in callables}
        self._callables, self._draw = callables, draw
        self._reference = reference or callables[0]
        self._compared: Compared = "each other" if reference is None else "reference"
        self._why_not = "" if wanted else "nothing was to be compared, as asked"
        self._seen = {each.name: _Seen() for each in callables}
        self._number = 0
        self._changed: frozenset[str] = frozenset()  # names of arguments that the reference changes
        self._restores = False
        self._own: dict[int, list[Arguments]] = {}  # of each callable
        self._in_float64 = True
        self._sets: list[Arguments] = [Arguments()]
        self._repeating_s = repeating_s
        self._known: deque[tuple[Arguments, Truth]] = deque(maxlen=_MOST_FIRST)
        self._proven = False
        self._began_s = self._spent_s = self._draw_s = self._truth_s = self._look_s = 0.0
        self._truth: Truth | None = None
        self._looks: list[_Look] = []
        self._is_new = True
        self._timed_looks = 0
        self._before = Arguments()
        self.structural_cases = 0

    @property
    def are_compared(self) -> bool:
        return not self._why_not

    @property
    def checked_on(self) -> list[Arguments]:
        """The drawn arguments of the calls that were checked first."""
        return [arguments for arguments, _ in self._known]

    def check_first(self) -> None:
        """Check a few calls of each before anything is timed. Those that raise will raise when they are timed."""
        began_s = time.perf_counter()
        until_s = began_s + self._repeating_s
        for number in range(_MOST_FIRST if self._draw.function else 1):
            if not self._why_not and (number < _FIRST or time.perf_counter() < until_s):
                self._check_all(self._next(), first=number == 0)
        self._truth_s = (time.perf_counter() - began_s) / max(len(self._known), 1)
        self._take_turns([arguments for arguments, _ in self._known][:_SETS] or [self._next()])
        for each in self._callables:
            self._repeat(each)
        self._began_s, self._spent_s = time.perf_counter(), 0.0

    def _check_all(self, arguments: Arguments, *, first: bool) -> None:
        truth = self.truth_on(arguments, first=first)
        if truth is None:
            return
        self._known.append((arguments, truth))
        if first:
            self._learn(truth, arguments)
        for each in self._callables:
            if each.name not in self.wrong and each is not self._reference:
                self._check_one(each, truth, arguments)
            self._seen[each.name].checked += 1

    def _learn(self, truth: Truth, arguments: Arguments) -> None:
        self._changed = truth.changed
        self._in_float64 = truth.in_float64
        if not truth.changed:
            return
        self._restores = all(can_restore(each.fn, arguments, truth.changed) for each in self._callables)
        which = min(truth.changed)
        if self._restores:
            self.notice("W_ARGUMENTS_RESTORED", f"{which} is changed by each call, and put back before the next")
        else:
            self.notice("W_ARGUMENTS_CHANGED", f"{which} is changed by each call, and the next one finds it so")

    def notice(self, code: str, text: str) -> None:
        """Warn of what holds for all of the callables."""
        for of_one in self.notices.values():
            of_one.append(Notice(code, text))

    def _check_one(self, each: Checked, truth: Truth, arguments: Arguments) -> None:
        try:
            with np.errstate(all="ignore"):
                outcome = outcome_of(each, arguments)
        except (Deferred, NotComparable) as error:
            return self._accuse(each.name, _code_of(error), str(error))
        except (Exception, SystemExit):
            return None  # which it will raise again when it is timed
        return self._judge(each.name, truth, outcome)

    def _repeat(self, each: Checked) -> None:
        """Check many calls of a quick callable: it may be wrong on one call of sixty."""
        until_s = time.perf_counter() + self._repeating_s / len(self._callables)
        for number in range(_REPEATED):
            if self._why_not or each.name in self.wrong or time.perf_counter() > until_s:
                return
            arguments, truth = self._known[number % len(self._known)]
            try:
                self._judge(each.name, truth, outcome_of(each, arguments))
            except (Exception, SystemExit):
                return
            self._seen[each.name].checked += 1

    def truth_on(self, arguments: Arguments, *, first: bool = False) -> Truth | None:
        """Find what is right on these arguments; None where nothing can be compared, which is remembered."""
        try:
            truth = truth_of(self._reference, self._reference.name, arguments, self._draw.seed)
            if first and truth.leaves:
                require_no_drawing(self._reference, self._reference.name, arguments, truth)
        except (Deferred, NotComparable, DrawsNumbers) as error:
            if self._compared == "reference":
                raise _refused(self._reference.name, error) from error
            self._why_not = str(error) if isinstance(error, DrawsNumbers) else f"{self._reference.name}: {error}"
            return None
        except Exception:
            if self._compared == "reference":
                raise
            self._why_not = f"{self._reference.name} raises an error"  # which it will again when it is timed
            return None
        if not truth.leaves:
            self._why_not = "they return nothing"
            if self._compared == "reference":
                raise _refused(self._reference.name, NotComparable("it returns nothing"))
            return None
        self._proven = self._proven or truth.proves
        return truth

    def _judge(self, name: str, truth: Truth, outcome: Outcome) -> None:
        if extra := outcome.changed - truth.changed:
            self._accuse(name, "E_ARGUMENT_CHANGED", f"it changes {min(extra)}, which the reference does not")
        elif why := why_outcome_wrong(truth, outcome):
            stale = bool(self._seen[name].last) and are_equal(outcome.answer, self._seen[name].last)
            self._accuse(name, "E_STALE_ANSWER" if stale else "E_OUTPUT", f"{why}{self._against}")
        self._seen[name].last = outcome.answer

    @property
    def _against(self) -> str:
        return (
            ""
            if self._compared == "reference"
            else f", which is {self._reference.name}'s answer; no reference was given"
        )

    def _accuse(self, name: str, code: str, why: str) -> None:
        self.wrong.setdefault(name, Notice(code, f"{name} is not ranked: {why}"))

    def accuse(self, name: str, why: str) -> None:
        self._accuse(name, "E_OUTPUT", why + self._against)

    def wrong_on(self, arguments: Arguments) -> dict[str, str] | None:
        """Say what is wrong on these arguments, by name; None where the reference does not take them."""
        try:
            truth = truth_of(self._reference, self._reference.name, arguments, self._draw.seed)
        except (Exception, SystemExit):
            return None
        found = {}
        for each in self._callables:
            if each.name in self.wrong or each is self._reference:
                continue
            try:
                with np.errstate(all="ignore"):
                    outcome = outcome_of(each, arguments)
            except (Exception, SystemExit) as error:
                found[each.name] = f"it raises {described(error)}"
                continue
            if why := why_outcome_wrong(truth, outcome):
                found[each.name] = why
        return found

    def in_turn(self, place: int) -> InTurn:
        """Return what is timed of a callable, on arguments of its own: another may change what it is given."""
        each = self._callables[place]
        if self._changed or place not in self._own:
            self._own[place] = [self._ready(copy_of(arguments)) for arguments in self._sets]
        return InTurn(restoring(each.fn) if self._restores else each.fn, each.done, self._own[place])

    def _ready(self, arguments: Arguments) -> Arguments:
        return with_originals(arguments, self._changed) if self._restores else arguments

    def _take_turns(self, sets: list[Arguments]) -> None:
        self._sets, self._own = sets, {}

    def drawn_for(self, rounds: int, places: Sequence[int], rng: random.Random) -> DrawnTurns:
        """Choose the arguments of a timed call of each that is looked at.

        They are new if there is time to find what is right, and take turns in the timed calls from the next block on.
        How long calls on new ones take is worth knowing without that, too; otherwise they are known ones.
        """
        self._looks, self._truth, self._is_new = [], None, True
        if self._why_not:
            return DrawnTurns()
        began_s = time.perf_counter()
        if self._affordable(self._truth_s) or (self._is_quick and not self._timed_looks):
            self._timed_looks += 1
            self._before = self._next()
            self._truth = self.truth_on(self._before)
        elif self._wants_new_calls():
            self._before = self._next()
        elif self._affordable(self._look_s):
            self._before, self._truth = rng.choice(self._known)
            self._is_new = False
        else:
            return DrawnTurns()
        self._spent_s += time.perf_counter() - began_s
        if self._why_not:
            return DrawnTurns()
        at = rng.randrange(rounds)
        self._looks = [_Look(self._callables[place], place, copy_of(self._before)) for place in places]
        return DrawnTurns([(at, place) for place in places], self._on, self._look)

    def _wants_new_calls(self) -> bool:
        """Tell whether a few more calls on new arguments would show answers that are kept, and cost little."""
        few = min(len(seen.new_ns) for seen in self._seen.values()) < _FEWEST_NEW
        return self._draw.function is not None and few and self._draw_s < _QUICK_S

    def check_between(self) -> None:
        """Check a call of each outside of the timed ones, where none of those can be drawn."""
        if self._why_not or not self._affordable(self._truth_s):
            return
        began_s = time.perf_counter()
        self._check_all(self._next(), first=False)
        self._spent_s += time.perf_counter() - began_s

    def _on(self, number: int) -> Arguments:
        given = self._looks[number].given
        for leaf in leaves_of_arguments(given).values():
            np.count_nonzero(leaf.values)  # reads them, so that the call finds them in the caches
        return self._ready(given)

    def _look(self, number: int, result: Any, wall_ns: float) -> None:
        began_s = time.perf_counter()
        look = self._looks[number]
        look.ns, look.returned = wall_ns, result
        try:
            look.leaves = leaves_of(result)
        except (Deferred, NotComparable) as error:
            look.failure = error
        self._spent_s += time.perf_counter() - began_s

    def look_back(self, usual_ns: Sequence[float]) -> None:
        """Check what the drawn calls of a block answered; ``usual_ns`` are the times of the others."""
        began_s = time.perf_counter()
        for look in self._looks:
            if not look.ns:
                continue
            name, seen = look.callable.name, self._seen[look.callable.name]
            if self._is_new:
                seen.new_ns.append(look.ns)
                seen.usual_ns.append(usual_ns[look.place])
            if look.failure is not None:
                self._accuse(name, _code_of(look.failure), str(look.failure))
            elif self._truth is not None:
                outcome = outcome_on(look.given, self._before, None)
                self._judge(name, self._truth, Outcome(look.leaves, outcome.arguments, outcome.changed))
                self._notice_overwritten(look)
                seen.checked += 1
                seen.timed += 1
        if self._looks and self._is_new:
            self._take_turns([*self._sets[1:], self._before])
        self._looks = []
        self._look_s = time.perf_counter() - began_s
        self._spent_s += self._look_s

    def _notice_overwritten(self, look: _Look) -> None:
        """Its answer, kept while others were called, may be another now."""
        name = look.callable.name
        try:
            now = leaves_of(look.returned)
        except Exception:
            return
        if not are_equal(now, look.leaves) and not any(n.code == "W_ANSWER_OVERWRITTEN" for n in self.notices[name]):
            text = "each of its calls overwrites the answer of the one before, which saves it the memory for a new one"
            self.notices[name].append(Notice("W_ANSWER_OVERWRITTEN", text))

    def accuse_of_kept_answers(self) -> None:
        """Accuse those whose calls on new arguments all took far longer than others."""
        for name, seen in self._seen.items():
            if len(seen.new_ns) < _FEWEST_NEW or not self._draw.function or (self._changed and not self._restores):
                continue
            new, usual = np.asarray(seen.new_ns), np.asarray(seen.usual_ns)
            if (new > _TIMES_LONGER * usual + _LONGER_NS).all():
                times = float(np.median(new / usual))
                self._accuse(
                    name,
                    "E_KEPT_ANSWERS",
                    f"calls on arguments that had not occurred before took {times:.0f} times as long as others, so it "
                    "keeps its answers",
                )

    def result(self) -> AnswersChecked:
        why_not = self._why_not or ("" if self._proven else "the right ones are nothing but zeros, which prove nothing")
        if why_not:
            return AnswersChecked("not", why_not=why_not, wrong=self.wrong)
        judged = [seen for name, seen in self._seen.items() if name not in self.wrong] or list(self._seen.values())
        return AnswersChecked(
            self._compared,
            self._reference.name,
            checked_calls=min(seen.checked for seen in judged),
            timed_calls=min(seen.timed for seen in judged),
            in_float64=self._in_float64,
            structural_cases=self.structural_cases,
            wrong=self.wrong,
        )

    def _next(self) -> Arguments:
        self._number += 1
        began_s = time.perf_counter()
        drawn = self._draw.arguments(self._number)
        self._draw_s = time.perf_counter() - began_s
        return drawn

    @property
    def _is_quick(self) -> bool:
        return self._truth_s < _QUICK_S

    def _affordable(self, further_s: float) -> bool:
        return self._spent_s + further_s <= _SHARE_OF_TIME * (time.perf_counter() - self._began_s)


def _code_of(error: Exception) -> str:
    return "E_DEFERRED_WORK" if isinstance(error, Deferred) else "E_OUTPUT"


def _refused(name: str, error: Exception) -> InvalidRequest:
    if isinstance(error, InvalidRequest):
        return error
    return InvalidRequest(f"nothing can be compared with the reference {name}: {error}", code="E_REFERENCE")
