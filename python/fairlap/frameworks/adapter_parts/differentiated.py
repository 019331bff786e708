"""Derivatives of functions in an adapter, whose option ``direction`` says in which mode they are taken."""

from __future__ import annotations

from typing import Any

from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.models.modes import MODES
from fairlap.models.workload import Workload

DIRECTION = "direction"
DIRECTIONS = ("forward", "reverse")
INPUTS_PER_OUTPUT = "inputs_per_output"


def implementation_of(work: Workload, wanted: Settings, library: str) -> Any:
    """Find the model's implementation; of a derivative, in the direction that is wanted."""
    found, direction = work.implementation(library), wanted.options.get(DIRECTION)
    if direction is None:
        return found
    if not MODES[work.mode].differentiates:
        raise Unsupported(f"{DIRECTION}={direction} is for derivatives, such as --mode jacobian")
    if direction not in (known := found.directions[work.mode]):
        raise Unsupported(f"{library} takes a {work.mode} in {' or '.join(known)} mode here, not {direction}")
    found.differentiate(work.mode, direction)
    return found


def direction_in_force(implementation: Any, work: Workload) -> dict[str, str]:
    """Give it; of a whole Jacobian also how many inputs there are for each output, which decides between directions."""
    if not MODES[work.mode].differentiates:
        return {}
    found, per_output = {DIRECTION: implementation.direction}, implementation.inputs_per_output
    return found if per_output is None else {**found, INPUTS_PER_OUTPUT: f"{per_output:g}"}
