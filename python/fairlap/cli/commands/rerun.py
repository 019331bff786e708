"""``fairlap rerun RUN``: the same plan again, after a list of what changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fairlap.cli.output import print_note, progress_notes
from fairlap.cli.output_options import race_options

if TYPE_CHECKING:
    from fairlap.race.run import Run


@click.command("rerun")
@click.argument("run", metavar="RUN|FILE")
@race_options
def command(run: str, store: bool, quiet: bool, as_json: bool, **given: Any) -> None:
    """Run the plan of a run again, in the same order and with the same seeds, and show first what changed since.

    RUN is `last`, the id of a stored run or its beginning; FILE is a run file.
    """
    from fairlap.cli.run_race import checked_output, run_race
    from fairlap.race.resume import require_same_sources
    from fairlap.request.race_request import RaceOptions
    from fairlap.store.run_sources import run_named

    then, _ = run_named(run)
    _require_cores(then)
    notify = progress_notes(quiet=quiet)
    require_same_sources(then.plan, notify)
    for line in _differences(then, notify):
        print_note(line)
    options = RaceOptions(**{name: value for name, value in given.items() if value is not None})
    output = checked_output(then.plan, options, store=store, quiet=quiet, as_json=as_json)
    raise SystemExit(run_race(then.plan, output))


def _require_cores(then: Run) -> None:
    """The plan binds processes to cores by their numbers."""
    import os

    from fairlap.errors import InvalidRequest

    wanted = {core for block in then.plan.blocks for core in block.cores}
    if lacking := sorted(wanted - os.sched_getaffinity(0)):
        raise InvalidRequest(
            f"the run used cores that are not available here: {', '.join(map(str, lacking))};"
            " draw a new plan with `fairlap compare`"
        )


def _differences(then: Run, notify: Callable[[str], None]) -> list[str]:
    from fairlap import __version__
    from fairlap.machine.differences import differences
    from fairlap.machine.facts import machine_facts
    from fairlap.race.resume import changed_data

    before = {**then.machine, "fairlap": then.fairlap, **_versions_then(then)}
    now = {**machine_facts(), "fairlap": str(__version__), **_versions_now(then)}
    data = changed_data(then.plan, then.processes, notify)
    found = [str(each) for each in (*differences(before, now), *data)]
    compared = "machine, versions and data" if then.plan.data else "machine and versions"
    return found or [f"no known change of {compared}"]


def _versions_then(then: Run) -> dict[str, str]:
    return {process.contestant: process.version for process in then.processes if process.version}


def _versions_now(then: Run) -> dict[str, str]:
    """Of contestants whose version the plan leaves open; the others have an environment made for their version."""
    found = _versions_then(then)
    for name in then.plan.contestants:
        if name.framework and not name.version:
            now = _version_now(name.framework, then.plan.device)
            # Some report more than their package does: 2026.4.1-21919-4f8a, or a local part.
            if now and not re.fullmatch(rf"{re.escape(now)}([-+ ].*)?", found.get(name.text, "")):
                found[name.text] = now
    return found


def _version_now(framework_name: str, device: str) -> str:
    """What is installed here, or what an environment would be made with. Empty without a package."""
    from importlib.metadata import PackageNotFoundError, version

    from fairlap.frameworks.registry import framework_named, is_importable

    framework = framework_named(framework_name)
    if not framework.packages:
        return ""
    wanted, _, tried = framework.packages_for(device)[0].partition("==")
    package = wanted.partition("[")[0]
    if not is_importable(framework):
        return tried
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
