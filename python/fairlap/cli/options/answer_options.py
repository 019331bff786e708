"""The options of `fairlap time` about what callables are called with, and what they should answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fairlap.cli.options.option_groups import grouped
from fairlap.errors import InvalidRequest
from fairlap.frameworks.programs.imported_callable import imported_callable

_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option(
        "--inputs",
        multiple=True,
        metavar="MODULE:CALLABLE",
        help="draw(rng, n=1000) for arguments; structural adds odd ones.",
    ),
    click.option("--reference", metavar="MODULE:CALLABLE", help="What answers right.  [default: the first callable]"),
    click.option("--any-answers", is_flag=True, default=None, help="Several: compare the times of different answers."),
)


answer_options = grouped(_OPTIONS)


def with_imported(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the names of callables by what they name."""
    found = dict(options)
    if inputs := found.pop("inputs", ()):
        names = [name for each in inputs for name in each.split(",")]
        found["inputs"] = [imported_callable(each) if ":" in each else each for each in names]
    if reference := options.get("reference"):
        found["reference"] = imported_callable(reference)
    return found


def arguments_of_one(options: dict[str, Any]) -> dict[str, Any]:
    """Draw the arguments of the one callable that is timed."""
    from fairlap.scenarios.callables.answers.drawn import Draw

    found = with_imported(options)
    if "reference" in found:
        raise InvalidRequest("--reference compares answers, so it needs several callables")
    draws = [each for each in found.pop("inputs", ()) if callable(each)]
    if not draws:
        return found
    drawn = Draw.of(draws[0], seed=0).arguments(0)
    return {**found, "args": drawn.args, "kwargs": drawn.kwargs}
