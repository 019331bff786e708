"""``fairlap rerun RUN``: the same plan once more, with what differs from then said first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.output_options import agreed, output_options, replayed

if TYPE_CHECKING:
    from fairlap.race.run import Run


@click.command("rerun")
@click.argument("run", metavar="RUN|FILE")
@output_options
def command(run: str, keep: bool, quiet: bool, **wishes: Any) -> None:
    """Run the plan of a kept run again, in the same order with the same draws. RUN is an id, or `last`; FILE is one
    that `fairlap compare --json` wrote."""
    from fairlap.cli.run_race import run_and_tell
    from fairlap.errors import InvalidRequest
    from fairlap.store.run_sources import run_named

    then, _ = run_named(run)
    _require_cores(then)
    for line in _differences(then):
        click.echo(f"fairlap: {line}", err=True)
    asked = replayed(then.plan, wishes)
    leaving_behind, ending = agreed(then.plan, asked, lambda _key, why: InvalidRequest(why), keep=keep, quiet=quiet)
    raise SystemExit(run_and_tell(then.plan, leaving_behind, ending))


def _require_cores(then: Run) -> None:
    """The plan binds processes to cores by their numbers."""
    import os

    from fairlap.errors import InvalidRequest

    wanted = {core for block in then.plan.blocks for core in block.cores}
    if lacking := sorted(wanted - os.sched_getaffinity(0)):
        raise InvalidRequest(
            f"the run used cores that are not here: {', '.join(map(str, lacking))};"
            " draw a new plan with `fairlap compare`"
        )


def _differences(then: Run) -> list[str]:
    from fairlap import __version__
    from fairlap.machine.differences import differences
    from fairlap.machine.facts import machine_facts
    from fairlap.race.resume import changed_data

    before = {**then.machine, "fairlap": then.fairlap, **_versions_then(then)}
    now = {**machine_facts(), "fairlap": str(__version__), **_versions_now(then)}
    data = changed_data(then.plan, then.processes, lambda line: click.echo(f"fairlap: {line}", err=True))
    found = [str(each) for each in (*differences(before, now), *data)]
    compared = "the machine, the versions and the data" if then.plan.data else "the machine and the versions"
    return found or [f"nothing that is known of {compared} differs from then"]


def _versions_then(then: Run) -> dict[str, str]:
    return {process.contestant: process.version for process in then.processes if process.version}


def _versions_now(then: Run) -> dict[str, str]:
    """Of those whose version the plan leaves open; the others have an environment made from what they name."""
    found = _versions_then(then)
    for name in then.plan.contestants:
        if name.framework and not name.version:
            now = _version_now(name.framework)
            # Some tell more of themselves than their package does: 2026.4.1-21919-4f8a, or a local part.
            if now and not re.fullmatch(rf"{re.escape(now)}([-+ ].*)?", found.get(name.text, "")):
                found[name.text] = now
    return found


def _version_now(framework_name: str) -> str:
    """What is installed here, or what an environment would be made with. Empty for what is no package."""
    from importlib.metadata import PackageNotFoundError, version

    from fairlap.frameworks.registry import framework_named, is_importable

    framework = framework_named(framework_name)
    if not framework.packages:
        return ""
    package, _, tried = framework.packages[0].partition("==")
    if not is_importable(framework):
        return tried
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
