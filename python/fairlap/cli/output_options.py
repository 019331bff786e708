"""What a race leaves behind: the options for it, and whether they can be had."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.values import not_empty

if TYPE_CHECKING:
    from fairlap.cli.run_race import Wishes
    from fairlap.race.plan import Plan
    from fairlap.race.plan_from_request import Refuse
    from fairlap.race.stopping import Ending
    from fairlap.request.race_request import RaceRequest

OUTPUTS = ("json", "csv", "md", "html")

_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--baseline", metavar="NAME", callback=not_empty, help="Whom the rows are held against.  [default: the fastest]"
    ),
    click.option(
        "--price",
        metavar="1.212/h|NAME",
        callback=not_empty,
        help="What an hour costs, or a name in `fairlap list prices`.",
    ),
    click.option("--json", metavar="FILE", type=_FILE, help="Write everything there."),
    click.option("--csv", metavar="FILE", type=_FILE, help="Write the rows there."),
    click.option("--md", metavar="FILE", type=_FILE, help="Write the rows there, for a pull request's comment."),
    click.option("--html", metavar="FILE", type=_FILE, help="Write a report there, one page that needs no network."),
    click.option("--keep/--no-keep", default=True, help="In the store; see `fairlap runs`.  [default: keep]"),
    click.option("--quiet", "-q", is_flag=True, help="No progress; the answer and what went wrong only."),
)


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given(wishes: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The files asked for, and everything else that was given."""
    outputs = {name: str(wishes[name]) for name in OUTPUTS if wishes[name] is not None}
    others = {name: value for name, value in wishes.items() if value is not None and name not in OUTPUTS}
    for name in ("batch", "mode", "precision"):
        if name in others:
            others[name] = list(others[name])
    if "contestants" in others:
        others["contestants"] = others["contestants"].split(",")
    return outputs, others


def replayed(plan: Plan, wishes: dict[str, Any]) -> RaceRequest:
    """A plan that is drawn already, with what is asked for beside it."""
    from fairlap.request.race_request import Outputs, RaceRequest

    outputs, others = given(wishes)
    return RaceRequest(
        models=[work.model for work in plan.works],
        contestants=[name.text for name in plan.contestants],
        **others,
        outputs=Outputs(**outputs),
    )


def agreed(plan: Plan, asked: RaceRequest, refuse: Refuse, *, keep: bool, quiet: bool) -> tuple[Wishes, Ending]:
    """All that can be wrong is said here, before the first process starts."""
    from fairlap.cli.resume_command import asked_again
    from fairlap.cli.run_race import Wishes
    from fairlap.race.plan_from_request import ending_of, output_files, saying
    from fairlap.race.stopping import Ending
    from fairlap.render.outputs import FORMATS, write_all
    from fairlap.results.prices import price_named
    from fairlap.store.run_sources import require_contestant

    target, budget_s = ending_of(asked, refuse)
    if asked.baseline:
        with saying("baseline", refuse):
            require_contestant(plan, asked.baseline)
    with saying("price", refuse):
        price = price_named(asked.price) if asked.price else None
    files = output_files(asked.outputs, refuse)
    for name in files:
        if missing := FORMATS[f".{name}"].missing():
            raise refuse(("outputs", name), missing)
    json_file = files.pop("json", None)
    more = [(file, FORMATS[f".{name}"]) for name, file in files.items()]
    wishes = Wishes(
        json_file,
        partial(write_all, more),
        keep,
        asked.baseline,
        price,
        quiet,
        asked_again(asked, quiet=quiet),
    )
    return wishes, Ending(plan, target=target, budget_s=budget_s)
