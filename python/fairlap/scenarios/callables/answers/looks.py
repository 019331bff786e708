"""Drawn calls among the timed ones: the arguments that they get, and what they returned.

What a call returned is copied right after it; it is compared when the block is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlap.engine.calls_in_turns import Arguments
from fairlap.scenarios.callables.answers.arrays import (
    Deferred,
    Leaves,
    NotComparable,
    answer_views,
    are_identical,
    leaves_of,
)
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import copy_of, leaves_of_arguments
from fairlap.scenarios.callables.answers.findings import Findings
from fairlap.scenarios.callables.answers.right_answers.in_chunks import read
from fairlap.scenarios.callables.answers.right_answers.known import Known
from fairlap.scenarios.callables.answers.right_answers.truth import Outcome, outcome_on


@dataclass
class Look:
    """At one call of a callable."""

    callable: Checked
    place: int
    given: Arguments
    returned: Any = None
    leaves: Leaves = field(default_factory=dict)
    failure: Exception | None = None
    ns: float = 0.0  # 0 before the call
    changed: frozenset[str] = frozenset()

    def take(self, result: Any, wall_ns: float, *, is_compared: bool) -> None:
        self.ns, self.returned = wall_ns, result
        try:
            self.leaves = leaves_of(result) if is_compared else answer_views(result)
        except (Deferred, NotComparable) as error:
            self.failure = error

    @property
    def is_overwritten(self) -> bool:
        """Whether its answer, kept while others were called, is another now."""
        try:
            now = answer_views(self.returned)
        except Exception:
            return False
        return now.keys() != self.leaves.keys() or not all(
            are_identical(leaf, self.leaves[name]) for name, leaf in now.items()
        )


class Looks:
    """Those of one block, of calls on the same arguments; ``truth`` of these is None where only their time counts."""

    def __init__(self, on: Known, callables: Sequence[Checked], places: Sequence[int], *, are_new: bool) -> None:
        self.on, self.are_new = on, are_new
        self._all = [Look(callables[place], place, copy_of(on.arguments)) for place in places]

    def given(self, number: int) -> Arguments:
        """Read the arguments of a call, so that it finds them in the caches as others do."""
        given = self._all[number].given
        for leaf in leaves_of_arguments(given).values():
            read(leaf.values)
        return given

    def take(self, number: int, result: Any, wall_ns: float) -> None:
        self._all[number].take(result, wall_ns, is_compared=self.on.truth is not None)

    def report(self, findings: Findings, usual_ns: Sequence[float]) -> None:
        """Judge what the calls answered; ``usual_ns`` are the times of the others."""
        for look in self._all:
            if not look.ns:
                continue
            name = look.callable.name
            seen = findings.seen[name]
            if self.are_new:
                seen.new_ns.append(look.ns)
                seen.usual_ns.append(usual_ns[look.place])
            if look.failure is not None:
                findings.accuse(name, code_of(look.failure), str(look.failure))
                continue
            outcome = outcome_on(look.given, self.on.leaves, None)
            look.changed = outcome.changed
            if self.on.truth is None:
                continue
            findings.judge(name, self.on.truth, Outcome(look.leaves, outcome.arguments, outcome.changed))
            if look.is_overwritten:
                text = (
                    "each of its calls overwrites the answer of the one before, which saves it the memory for a new one"
                )
                findings.notice_once(name, "W_ANSWER_OVERWRITTEN", text)
            seen.checked += 1
            seen.timed += 1

    @property
    def had(self) -> dict[int, Arguments]:
        """By place, the arguments that a callable has had and not changed."""
        return {look.place: look.given for look in self._all if look.ns and not look.failure and not look.changed}


def code_of(error: Exception) -> str:
    return "E_DEFERRED_WORK" if isinstance(error, Deferred) else "E_OUTPUT"
