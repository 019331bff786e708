"""The document of ``fairlap diff``: what changed between two runs."""

from __future__ import annotations

from fairlap.history.between_runs import Difference
from fairlap.history.gate import GateFinding
from fairlap.history.operators import OperatorsCompared
from fairlap.history.ratios_between_runs import RatioCompared
from fairlap.printed_document import PrintedDocument


class RunsDiffer(PrintedDocument, frozen=True, tag="fairlap.diff/1"):
    same_run: bool  # then there is nothing to compare
    ratios: tuple[RatioCompared, ...]  # what the races claim, before and after
    differences: tuple[Difference, ...]
    operators: list[OperatorsCompared]
    not_compared: tuple[str, ...]  # what only one of the runs holds
    machine: list[str]  # what differs between the machines
    code: list[str]  # files of the user, in modules that both import, which are not the same
    required: tuple[GateFinding, ...] = ()  # what is shown of quantities that are required, as a gate judges them
    trades: tuple[str, ...] = ()  # what the faster of the runs is shown to cost, such as memory
