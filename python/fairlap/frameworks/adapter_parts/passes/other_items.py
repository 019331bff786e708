"""How a pipeline that does other work than asked for fails."""

from __future__ import annotations

from typing import Literal

from fairlap.frameworks.contract_parts.called_programs import ContestantFailed

Fault = Literal[
    "last batch dropped", "number of items", "size of batches", "form of items", "repeated", "label", "pixels"
]


class OtherItems(ContestantFailed):
    """A pass yielded something else than each item once, in batches of the size asked for."""

    code = reported = "E_OUTPUT"

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault
