"""Which recorded results were measured with another driver, kernel, microcode or framework than are here now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.history.trends import machine_named
from fairlap.machine.differences import FactDifference, differences
from fairlap.printed_document import PrintedDocument
from fairlap.race.run import Run
from fairlap.store.file_store import Store
from fairlap.store.search import newest_answers

FACTS = ("driver", "kernel", "microcode")


@dataclass(frozen=True)
class StaleResult:
    run: str
    began_at: str
    works: tuple[str, ...]
    contestants: tuple[str, ...]
    changed: tuple[FactDifference, ...]
    renew: str  # the command that measures it again


class Staleness(PrintedDocument, frozen=True, tag="fairlap.stale/1"):
    stale: tuple[StaleResult, ...]  # the newest first
    current: int
    elsewhere: int  # results of other hardware, which cannot be renewed here


def staleness_of(store: Store, machine: Mapping[str, str], *, model: str = "") -> Staleness:
    """Of the newest run of each race; older runs of the same one are history."""
    stale: list[StaleResult] = []
    current = elsewhere = 0
    for run_id in store.ask(newest_answers, model):
        run = store.load(run_id)
        if machine_named(run.machine, run.plan.device) != machine_named(machine, run.plan.device):
            elsewhere += 1
        elif changed := changed_since(run, machine):
            stale.append(_stale(run_id, run, changed))
        else:
            current += 1
    return Staleness(tuple(stale), current, elsewhere)


def changed_since(run: Run, machine: Mapping[str, str]) -> tuple[FactDifference, ...]:
    """List what changed since; a fact that was not recorded then, or is not known now, is not a difference."""
    facts = [name for name in FACTS if name in run.machine and name in machine]
    if run.plan.device == "cpu":
        facts = [name for name in facts if name != "driver"]
    versions = versions_then(run)  # none of a contestant that did not start
    then = {**{name: run.machine[name] for name in facts}, **versions}
    now = {name: machine[name] for name in facts}
    now |= {name: version for name, version in versions_now(run).items() if name in versions}
    return tuple(differences(then, now))


def versions_then(then: Run) -> dict[str, str]:
    return {process.contestant: process.version for process in then.processes if process.version}


def versions_now(then: Run) -> dict[str, str]:
    """Of contestants whose version the plan leaves open; the others have an environment made for their version."""
    found = versions_then(then)
    for name in then.plan.contestants:
        if name.framework and not name.is_apart:
            now = _version_now(name.framework, then.plan.device)
            # Some report more than their package does: 2026.4.1-21919-4f8a, or a local part.
            if now and not re.fullmatch(rf"{re.escape(now)}([-+ ].*)?", found.get(name.text, "")):
                found[name.text] = now
    return found


def _version_now(framework_name: str, device: str) -> str:
    """Find the version that is installed here, or that an environment would be made with. Empty without a package."""
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


def _stale(run_id: str, run: Run, changed: tuple[FactDifference, ...]) -> StaleResult:
    works = tuple(map(run.plan.title_of, run.plan.works))
    contestants = tuple(name.text for name in run.plan.contestants)
    return StaleResult(run_id, run.began_at, works, contestants, changed, f"fairlap rerun {run_id}")
