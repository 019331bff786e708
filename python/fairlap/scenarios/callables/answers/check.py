"""The answers of callables that are compared: checked before they are timed, at drawn calls among the timed, and after.

Checks take a share of the time, and none of it is inside a timed call. The first calls of each callable, one among the
timed ones of the first block and the last one are checked however long that takes; others where the share allows it.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from fairlap.engine.calls_in_turns import Arguments, DrawnTurns, InTurn
from fairlap.engine.measurement import Notice
from fairlap.errors import described
from fairlap.scenarios.callables.answers.arrays import Deferred, NotComparable
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw
from fairlap.scenarios.callables.answers.findings import FEWEST_NEW, Findings
from fairlap.scenarios.callables.answers.first_calls import DRAWN, times_longer_when_new
from fairlap.scenarios.callables.answers.looks import Looks, code_of
from fairlap.scenarios.callables.answers.result import AnswersChecked
from fairlap.scenarios.callables.answers.right_answers.known import Known, Truths
from fairlap.scenarios.callables.answers.right_answers.truth import Outcome
from fairlap.scenarios.callables.answers.spending import Spending, Window
from fairlap.scenarios.callables.answers.turn_arguments import TurnArguments
from fairlap.scenarios.callables.answers.wrong import why_outcome_wrong

_FIRST, _MOST_FIRST = 2, 8  # calls on other arguments each that are checked before
_REPEATED = 240  # further calls on these that are checked at most: one wrong in sixty is among them, but for 2 %
_SHORT_S = 0.002
_QUICK_S = 0.02
_KEEPING_S = 0.1  # for drawing what shows whether one callable keeps the answers of short calls
_TIMES_LONGER = 4.0  # those of right callables are below 2


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
        self._callables, self._draw = callables, draw
        self._truths = Truths(reference or callables[0], "each other" if reference is None else "reference", draw.seed)
        self._truths.why_not = "" if wanted else "nothing was to be compared, as asked"
        against = "" if reference else f"; without a reference {callables[0].name}'s answer counts as right"
        self._findings = Findings([each.name for each in callables], against)
        self._arguments = TurnArguments(callables)
        self._repeating_s = repeating_s
        self._number = 0
        self._known: deque[Known] = deque(maxlen=_MOST_FIRST)
        self._right: dict[str, dict[int, Outcome]] = {}  # what each answered, by the place of the arguments
        self._looks: Looks | None = None
        self._has_looked = False
        self._spending = Spending()
        self._draw_s = self._truth_s = self._look_s = 0.0
        self.structural_cases = 0

    @property
    def wrong(self) -> dict[str, Notice]:
        return self._findings.wrong

    @property
    def notices(self) -> dict[str, list[Notice]]:
        return self._findings.notices

    @property
    def are_compared(self) -> bool:
        return not self._truths.why_not

    def notice(self, code: str, text: str) -> None:
        """Warn of what holds for all of the callables."""
        self._findings.notice(code, text)

    def accuse(self, name: str, why: str) -> None:
        self._findings.accuse_of_answer(name, why)

    def took(self, seconds: float) -> None:
        """Count the time of their warm-up or of a block, checks included; checks may take a share of it."""
        self._spending.whole_s += seconds

    @property
    def checked_on(self) -> list[Arguments]:
        """The drawn arguments of the calls that were checked first."""
        return [known.arguments for known in self._known]

    def check_first(self) -> None:
        """Check a few calls of each before anything is timed. Those that raise will raise when they are timed."""
        began_s, window = time.perf_counter(), Window(self._repeating_s)
        with self._spending.counted():
            for number in range(_MOST_FIRST if self._draw.function else 1):
                if not self.are_compared or (number >= self._fewest_first and window.is_over):
                    break
                self._check_all(self._next(), first=number == 0)
                self._truth_s = (time.perf_counter() - began_s) / (number + 1)
            self._arguments.begin([known.arguments for known in self._known] or [self._next()])
        self._repeat(self._repeating_s)
        self.took(time.perf_counter() - began_s)

    @property
    def _fewest_first(self) -> int:
        """Where it takes long to find what is right, the second arguments are those of the first timed look."""
        return _FIRST if self._truth_s < _SHORT_S else 1

    def _check_all(self, arguments: Arguments, *, first: bool = False) -> None:
        truth = self._truths.on(arguments, first=first)
        if truth is None:
            return
        known = Known(arguments, truth)
        self._known.append(known)
        if first:
            self._learn(truth.changed, arguments)
            self._truths.in_float64 = truth.in_float64
        for each in self._callables:
            if each.name not in self.wrong and each is not self._truths.reference:
                self._check_one(each, known)
            self._findings.seen[each.name].checked += 1

    def _learn(self, changed: frozenset[str], arguments: Arguments) -> None:
        self._arguments.change(changed, arguments)
        if not changed:
            return
        which = min(changed)
        if self._arguments.restores:
            self.notice("W_ARGUMENTS_RESTORED", f"{which} is changed by each call, and put back before the next")
        else:
            self.notice("W_ARGUMENTS_CHANGED", f"{which} is changed by each call, and the next one finds it so")

    def _check_one(self, each: Checked, known: Known, right: Outcome | None = None) -> Outcome | None:
        """None if it raises, which it will again when it is timed. ``right`` is an outcome that was found right."""
        assert known.truth is not None
        try:
            with np.errstate(all="ignore"):
                outcome = known.outcome_of(each)
        except (Deferred, NotComparable) as error:
            self._findings.accuse(each.name, code_of(error), str(error))
            return None
        except (Exception, SystemExit):
            return None
        if right is None or not outcome.is_same_as(right):
            self._findings.judge(each.name, known.truth, outcome)
        return outcome

    def _repeat(self, seconds: float) -> None:
        """Check further calls of quick callables for so long: one may be wrong on one call of sixty."""
        if not self._known or seconds < _SHORT_S / 4:
            return
        with self._spending.counted():
            for each in self._callables:
                seen, right = self._findings.seen[each.name], self._right.setdefault(each.name, {})
                window = Window(seconds / len(self._callables))
                while each.name not in self.wrong and seen.repeated < _REPEATED and not window.is_over:
                    place = seen.repeated % len(self._known)
                    outcome = self._check_one(each, self._known[place], right.get(place))
                    if outcome is None:
                        break
                    right.setdefault(place, outcome)
                    seen.repeated += 1
                    seen.checked += 1

    def wrong_on(self, arguments: Arguments) -> dict[str, str] | None:
        """Say what is wrong on these arguments, by name; None where the reference does not take them."""
        try:
            truth = self._truths.evaluated_on(arguments)
        except (Exception, SystemExit):
            return None
        known, found = Known(arguments, truth), {}
        for each in self._callables:
            if each.name in self.wrong or each is self._truths.reference:
                continue
            try:
                with np.errstate(all="ignore"):
                    outcome = known.outcome_of(each)
            except (Exception, SystemExit) as error:
                found[each.name] = f"it raises {described(error)}"
                continue
            if why := why_outcome_wrong(truth, outcome):
                found[each.name] = why
        return found

    def in_turn(self, place: int) -> InTurn:
        """Return what is timed of a callable."""
        with self._spending.counted():
            return self._arguments.in_turn(place)

    def drawn_for(self, rounds: int, places: Sequence[int], rng: random.Random) -> DrawnTurns:
        """Choose the arguments of a timed call of each that is looked at.

        In the first block they are new, and later if there is time to find what is right; then they take turns in the
        timed calls from the next block on. How long calls on new ones take is worth knowing without that, too;
        otherwise they are known ones.
        """
        self._looks = None
        if not self.are_compared:
            return DrawnTurns()
        with self._spending.counted():
            on, are_new = self._to_look_at(rng)
            if on is None:
                return DrawnTurns()
            self._looks = looks = Looks(on, self._callables, places, are_new=are_new)
        at = rng.randrange(rounds)

        def given(number: int) -> Arguments:
            with self._spending.counted():
                return self._arguments.ready(looks.given(number))

        def take(number: int, result: object, wall_ns: float) -> None:
            with self._spending.counted():
                looks.take(number, result, wall_ns)

        return DrawnTurns([(at, place) for place in places], given, take)

    def _to_look_at(self, rng: random.Random) -> tuple[Known | None, bool]:
        """Return arguments and whether they are new; None where no call is looked at in this block."""
        began_s, is_first = time.perf_counter(), not self._has_looked
        self._has_looked = True
        if self._spending.affords(self._truth_s) or (is_first and self._draw.function is not None):
            arguments = self._next()
            truth = self._truths.on(arguments)
            self._truth_s = time.perf_counter() - began_s
            return (None if truth is None else Known(arguments, truth)), True
        if self._wants_new_calls():
            return Known(self._next(), None), True
        if is_first or self._spending.affords(self._look_s):
            return rng.choice(self._known), False
        return None, False

    def _wants_new_calls(self) -> bool:
        """Whether a few more calls on new arguments would show answers that are kept, and cost little."""
        few = min(len(seen.new_ns) for seen in self._findings.seen.values()) < FEWEST_NEW
        return self._draw.function is not None and few and self._draw_s < _QUICK_S

    def check_between(self) -> None:
        """Check a call of each outside of the timed ones, where none of those can be drawn."""
        if self.are_compared and (not self._has_looked or self._spending.affords(self._truth_s)):
            self._has_looked = True
            with self._spending.counted():
                self._check_all(self._next())

    def look_back(self, usual_ns: Sequence[float]) -> None:
        """Check what the drawn calls of a block answered; ``usual_ns`` are the times of the others."""
        if self._looks is None:
            return
        began_s, looks = time.perf_counter(), self._looks
        with self._spending.counted():
            looks.report(self._findings, usual_ns)
            if looks.are_new:
                self._arguments.next_set(looks.on.arguments, looks.had)
        self._looks = None
        self._look_s = time.perf_counter() - began_s
        self._repeat(self._spending.left_s)

    def check_last(self) -> None:
        """Check one more call of each after the last block: it may answer otherwise once it has been called often."""
        if not self._known or not self.are_compared:
            return
        self._repeat(self._spending.left_s)
        known = self._known[-1]
        with self._spending.counted():
            for each in self._callables:
                if each.name not in self.wrong and self._check_one(each, known) is not None:
                    self._findings.seen[each.name].checked += 1

    def accuse_of_kept_answers(self) -> None:
        """Accuse those whose calls on new arguments took far longer than others."""
        if self._draw.function and (self._arguments.restores or not self._arguments.changed):
            self._findings.accuse_of_kept_answers()
        if not self._draw.function or self._arguments.changed or not self.are_compared:
            return
        for each in self._callables:
            usual_ns = self._findings.seen[each.name].usual_ns
            if each.name not in self.wrong and usual_ns and self._draw_s * DRAWN < _KEEPING_S:
                times = times_longer_when_new(each, min(usual_ns), self._next)
                if times is not None and times >= _TIMES_LONGER:
                    self._findings.accuse_of_keeping(each.name, times)

    def result(self) -> AnswersChecked:
        truths = self._truths
        why_not = truths.why_not
        if not truths.is_proven:
            why_not = why_not or "the right ones are nothing but zeros, which prove nothing"
        if why_not:
            return AnswersChecked("not", why_not=why_not, wrong=self.wrong)
        fewest = self._findings.fewest()
        return AnswersChecked(
            truths.compared,
            truths.reference.name,
            checked_calls=fewest.checked,
            timed_calls=fewest.timed,
            in_float64=truths.in_float64,
            structural_cases=self.structural_cases,
            wrong=self.wrong,
        )

    def _next(self) -> Arguments:
        self._number += 1
        began_s = time.perf_counter()
        drawn = self._draw.arguments(self._number)
        self._draw_s = time.perf_counter() - began_s
        return drawn
