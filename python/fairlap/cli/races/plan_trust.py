"""A plan that was not drawn on this machine is shown, and runs only when its user allows what it reaches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fairlap.errors import InvalidRequest
from fairlap.printable import one_line

if TYPE_CHECKING:
    from fairlap.race.planning.plan import Plan

CODE = "E_PLAN_TRUST"
TRUST = click.option(
    "--trust", is_flag=True, default=None, help="Run the commands, files and packages of a plan from elsewhere."
)


def print_reach(plan: Plan) -> bool:
    """Print what the plan reaches that this machine has not allowed, and return whether there was any.

    What looks like a secret is shown as well: a shell runs ``TOKEN=$(...)``, and secrets of this user are in no plan.
    """
    from fairlap.race.planning.plan_reach import is_allowed, reach_of

    reach = reach_of(plan)
    if is_allowed(reach):
        return False
    for line in reach:
        click.echo(f"fairlap: the plan reaches {one_line(line)}", err=True)
    return True


def require_allowed(plan: Plan, where: str, *, trust: bool) -> None:
    """Show and ask, or raise. Nothing of the plan was opened yet."""
    from fairlap.quantity_text import count
    from fairlap.race.planning.plan_reach import allow, reach_of

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
