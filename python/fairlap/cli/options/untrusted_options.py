"""``fairlap time --untrusted``: its options, and which of the others apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.output import print_note
from fairlap.errors import InvalidRequest

if TYPE_CHECKING:
    from fairlap.scenarios.callables.untrusted.result import UntrustedComparison

_NEEDED = ("reference", "inputs")
_APPLICABLE = (*_NEEDED, "budget", "only_winner", "blocks", "margin", "seed", "calls_per_sample", "wait", "device")
UNTRUSTED = click.option("--untrusted", is_flag=True, help="Run each in a sandbox, and judge it from outside.")


def untrusted_comparison(names: Sequence[str], options: Mapping[str, Any]) -> UntrustedComparison:
    """Compare the callables of files, each in its sandbox."""
    if missing := [name for name in _NEEDED if name not in options]:
        raise InvalidRequest(f"--untrusted needs --{missing[0]}: what is not checked cannot be trusted")
    given = {name: value for name, value in options.items() if value != "auto"}
    if unfit := [name for name in given if name not in _APPLICABLE]:
        raise InvalidRequest(f"--{unfit[0].replace('_', '-')} does not apply to --untrusted")
    if len(given["inputs"]) > 1:
        raise InvalidRequest("--untrusted takes one --inputs, which draws the arguments")
    given["inputs"] = given["inputs"][0]
    given["device"] = str(given.get("device", "cpu"))
    from fairlap.scenarios.callables.untrusted.race import compare_untrusted

    return compare_untrusted(names, **given, notify=print_note)
