"""Which recorded results were measured with another driver, kernel, microcode or framework than are here now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.history.trends import machine_named
from fairlap.history.versions import versions_now, versions_then
from fairlap.machine.differences import FactDifference, differences
from fairlap.race.run import Run
from fairlap.store.search import newest_answers
from fairlap.store.store import Store

FACTS = ("driver", "kernel", "microcode")


@dataclass(frozen=True)
class StaleResult:
    run: str
    began_at: str
    works: tuple[str, ...]
    contestants: tuple[str, ...]
    changed: tuple[FactDifference, ...]
    renew: str  # the command that measures it again


@dataclass(frozen=True)
class Staleness:
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


def _stale(run_id: str, run: Run, changed: tuple[FactDifference, ...]) -> StaleResult:
    works = tuple(map(run.plan.title_of, run.plan.works))
    contestants = tuple(name.text for name in run.plan.contestants)
    return StaleResult(run_id, run.began_at, works, contestants, changed, f"fairlap rerun {run_id}")
