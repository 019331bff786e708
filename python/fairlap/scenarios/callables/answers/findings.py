"""What the checked calls of each callable have shown: how many were right, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.scenarios.callables.answers.arrays import Leaves, are_equal
from fairlap.scenarios.callables.answers.right_answers.truth import Outcome, Truth
from fairlap.scenarios.callables.answers.wrong import why_outcome_wrong

FEWEST_NEW = 6
_TIMES_LONGER = 10.0  # on arguments that occur for the first time, but are in the caches
_LONGER_NS = 2_000.0
_SHARE_LONGER = 0.75  # an answer that is kept by an address is found where another array has got it


@dataclass
class Seen:
    """Of one callable: its checked calls, and how long those on new arguments took beside the usual ones."""

    checked: int = 0
    timed: int = 0
    repeated: int = 0
    new_ns: list[float] = field(default_factory=list)
    usual_ns: list[float] = field(default_factory=list)
    last: Leaves = field(default_factory=dict)

    @property
    def keeps_answers(self) -> bool:
        """Whether most calls on new arguments took far longer than others."""
        new, usual = np.asarray(self.new_ns), np.asarray(self.usual_ns)
        longer = new > _TIMES_LONGER * usual + _LONGER_NS
        return int(longer.sum()) >= FEWEST_NEW and bool(longer.mean() >= _SHARE_LONGER)


class Findings:
    """``against`` is what follows the reason why one is wrong; empty where a reference says so."""

    def __init__(self, names: Iterable[str], against: str) -> None:
        self.seen = {name: Seen() for name in names}
        self.wrong: dict[str, Notice] = {}
        self.notices: dict[str, list[Notice]] = {name: [] for name in self.seen}
        self._against = against

    def notice(self, code: str, text: str) -> None:
        """Warn of what holds for all of the callables."""
        for of_one in self.notices.values():
            of_one.append(Notice(code, text))

    def notice_once(self, name: str, code: str, text: str) -> None:
        if not any(each.code == code for each in self.notices[name]):
            self.notices[name].append(Notice(code, text))

    def accuse(self, name: str, code: str, why: str) -> None:
        self.wrong.setdefault(name, Notice(code, f"{name} is not ranked: {why}"))

    def accuse_of_answer(self, name: str, why: str, code: str = "E_OUTPUT") -> None:
        self.accuse(name, code, why + self._against)

    def judge(self, name: str, truth: Truth, outcome: Outcome) -> None:
        seen = self.seen[name]
        if extra := outcome.changed - truth.changed:
            self.accuse(name, "E_ARGUMENT_CHANGED", f"it changes {min(extra)}, which the reference does not")
        elif why := why_outcome_wrong(truth, outcome):
            stale = bool(seen.last) and are_equal(outcome.answer, seen.last)
            self.accuse_of_answer(name, why, "E_STALE_ANSWER" if stale else "E_OUTPUT")
        seen.last = outcome.answer

    def accuse_of_kept_answers(self) -> None:
        for name, seen in self.seen.items():
            if seen.keeps_answers:
                self.accuse_of_keeping(name, float(np.median(np.asarray(seen.new_ns) / np.asarray(seen.usual_ns))))

    def accuse_of_keeping(self, name: str, times: float) -> None:
        self.accuse(
            name,
            "E_KEPT_ANSWERS",
            f"calls on arguments that had not occurred before took {times:.0f} times as long as others, so it "
            "keeps its answers",
        )

    def fewest(self) -> Seen:
        """Count the checked calls of the callable with the fewest, of those that are right if any is."""
        judged = [seen for name, seen in self.seen.items() if name not in self.wrong] or list(self.seen.values())
        return Seen(min(each.checked for each in judged), min(each.timed for each in judged))
