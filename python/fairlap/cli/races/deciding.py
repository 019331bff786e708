"""Commands that race until something is decided, and answer with the decision alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from fairlap.cli.output import print_note
from fairlap.cli.own_process import OWN_PROCESS

if TYPE_CHECKING:
    from fairlap.race.planning.plan import Plan
    from fairlap.race.progress import Progress

Decision = TypeVar("Decision")
Decide = Callable[["Callable[[Plan, float | None], Progress]", Callable[[str], None]], Decision]


def decided(
    decide: Decide[Decision], *, quiet: bool, interrupted: str = "interrupted; nothing was decided"
) -> Decision:
    """Call it with what shows progress and what prints notes; Ctrl-C ends the command without a decision."""
    from fairlap.interrupts import interrupted_once, status_of
    from fairlap.machine.programs.orphans import adopt_orphans
    from fairlap.race.progress import progress_for

    if click.get_current_context().obj == OWN_PROCESS:
        adopt_orphans()
    with interrupted_once():
        try:
            return decide(
                lambda plan, longest_s: progress_for(plan, longest_s, quiet=quiet),
                (lambda line: None) if quiet else print_note,
            )
        except KeyboardInterrupt as interrupt:
            print_note(interrupted)
            raise SystemExit(status_of(interrupt)) from None
