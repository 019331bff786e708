"""What is known of the answers of callables that were compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairlap import quantity_text
from fairlap.engine.measurement import Notice

Compared = Literal["reference", "each other", "not"]


@dataclass(frozen=True)
class AnswersChecked:
    """``why_not`` is empty where they were compared. ``wrong`` has the callables that are not ranked for it.

    ``checked_calls`` is of the callable with the fewest; ``timed_calls`` are those among the timed ones.
    """

    compared: Compared
    reference: str = ""
    why_not: str = ""
    checked_calls: int = 0
    timed_calls: int = 0
    in_float64: bool = True
    structural_cases: int = 0
    wrong: Mapping[str, Notice] = field(default_factory=dict)

    @property
    def text(self) -> str:
        if self.compared == "not":
            return f"answers not compared: {self.why_not}"
        count = quantity_text.count(self.checked_calls, "call")
        timed = f", {self.timed_calls} of them timed" if self.timed_calls else ""
        cases = (
            f", and {quantity_text.count(self.structural_cases, 'structural case')}" if self.structural_cases else ""
        )
        of = "" if self.in_float64 else ", not in float64, which it cannot compute in"
        if self.compared == "reference":
            return f"answers checked against {self.reference} on {count} of each{timed}{cases}{of}"
        right = "the answers agree with each other" if not self.wrong else f"answers compared with {self.reference}'s"
        return f"{right} on {count} of each{timed}{cases}; no reference says that they are right"
