"""A plan that was not drawn on this machine is shown, and runs only when its user allows what it reaches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairlap.cli.output import print_note
from fairlap.errors import InvalidRequest

if TYPE_CHECKING:
    from fairlap.race.plan import Plan

CODE = "E_PLAN_TRUST"
TRUST = click.option(
    "--trust", is_flag=True, default=None, help="Run the commands, files and packages of a plan from elsewhere."
)


def print_reach(plan: Plan) -> bool:
    """Whether there was something that this machine has not allowed."""
    from fairlap.race.plan_reach import is_allowed, reach_of

    reach = reach_of(plan)
    if is_allowed(reach):
        return False
    for line in reach:
        print_note(f"the plan reaches {line}")
    return True


def require_allowed(plan: Plan, where: str, *, trust: bool) -> None:
    """Show and ask, or raise. Nothing of the plan was opened yet."""
    from fairlap.quantity_text import count
    from fairlap.race.plan_reach import allow, reach_of

    if not print_reach(plan):
        return
    if not (trust or _confirmed()):
        things = count(len(reach_of(plan)), "thing")
        raise InvalidRequest(
            f"{where} was not drawn on this machine and reaches the {things} above; read them, then add --trust to run "
            "it",
            code=CODE,
        )
    allow(plan)


def _confirmed() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() and click.confirm("Run it?", err=True)
