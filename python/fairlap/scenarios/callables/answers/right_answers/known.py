"""The right answers to the arguments of one comparison, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fairlap.engine.calls_in_turns import Arguments
from fairlap.errors import InvalidRequest
from fairlap.scenarios.callables.answers.arrays import Deferred, Leaves, NeverStarted, NotComparable
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import leaves_of_arguments
from fairlap.scenarios.callables.answers.result import Compared
from fairlap.scenarios.callables.answers.right_answers.in_chunks import Buffers
from fairlap.scenarios.callables.answers.right_answers.truth import (
    DrawsNumbers,
    Outcome,
    Truth,
    outcome_of,
    require_no_drawing,
    truth_of,
)


@dataclass(frozen=True)
class Known:
    """Arguments of calls, which no call has itself, with the right answer to them; None where that is not known."""

    arguments: Arguments
    truth: Truth | None

    @cached_property
    def leaves(self) -> Leaves:
        return leaves_of_arguments(self.arguments)

    def outcome_of(self, call: Checked) -> Outcome:
        return outcome_of(call, self.arguments, self.leaves)


class Truths:
    """``why_not`` is empty as long as something can be compared."""

    def __init__(self, reference: Checked, compared: Compared, seed: int) -> None:
        self.reference, self.compared, self._seed = reference, compared, seed
        self._buffers = Buffers()
        self.why_not = ""
        self.in_float64 = True
        self.is_proven = False  # that a wrong answer would be noticed

    def on(self, arguments: Arguments, *, first: bool = False) -> Truth | None:
        """None where nothing can be compared, which is remembered."""
        name = self.reference.name
        try:
            truth = self.evaluated_on(arguments)
            if first and truth.leaves:
                require_no_drawing(self.reference, name, arguments, truth)
        except NeverStarted as error:
            raise InvalidRequest(str(error), code="E_DEFERRED_WORK") from None
        except (Deferred, NotComparable, DrawsNumbers) as error:
            if self.compared == "reference":
                raise _refused(name, error) from error
            self.why_not = str(error) if isinstance(error, DrawsNumbers) else f"{name}: {error}"
            return None
        except Exception:
            if self.compared == "reference":
                raise
            self.why_not = f"{name} raises an error"  # which it will again when it is timed
            return None
        if not truth.leaves:
            self.why_not = "they return nothing"
            if self.compared == "reference":
                raise _refused(name, NotComparable("it returns nothing"))
            return None
        self.is_proven = self.is_proven or truth.proves
        return truth

    def evaluated_on(self, arguments: Arguments) -> Truth:
        return truth_of(self.reference, self.reference.name, arguments, self._seed, self._buffers)


def _refused(name: str, error: Exception) -> InvalidRequest:
    if isinstance(error, InvalidRequest):
        return error
    return InvalidRequest(f"nothing can be compared with the reference {name}: {error}", code="E_REFERENCE")
