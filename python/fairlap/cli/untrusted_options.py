"""``fairlap time --untrusted``: its options, and which of the others apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fairlap.errors import InvalidRequest

if TYPE_CHECKING:
    from fairlap.scenarios.callables.untrusted.result import UntrustedComparison

SECTION = "untrusted reference inputs"
_OF_UNTRUSTED = ("reference", "inputs")
_APPLICABLE = (*_OF_UNTRUSTED, "budget", "only_winner", "blocks", "margin", "seed", "calls_per_sample")
_OPTIONS = (
    click.option("--untrusted", is_flag=True, help="Run each callable in a sandbox, judged from outside of it."),
    click.option("--reference", metavar="FILE.py:NAME", help="The right answer: your callable, run here."),
    click.option("--inputs", metavar="FILE.py:NAME", help="Draws the arguments of a call: your callable, run here."),
)


def untrusted_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_without_untrusted(options: Mapping[str, Any]) -> None:
    if misplaced := [name for name in _OF_UNTRUSTED if name in options]:
        raise InvalidRequest(f"--{misplaced[0]} needs --untrusted")


def untrusted_comparison(names: Sequence[str], options: Mapping[str, Any]) -> UntrustedComparison:
    """Compare the callables of files, each in its sandbox."""
    if missing := [name for name in _OF_UNTRUSTED if name not in options]:
        raise InvalidRequest(f"--untrusted needs --{missing[0]}: what is not checked cannot be trusted")
    given = {name: value for name, value in options.items() if value != "auto"}
    if unfit := [name for name in given if name not in _APPLICABLE]:
        raise InvalidRequest(f"--{unfit[0].replace('_', '-')} does not apply to --untrusted")
    from fairlap.scenarios.callables.untrusted.race import compare_untrusted

    return compare_untrusted(names, **given)
