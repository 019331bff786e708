"""What differs between runs: machines, versions, settings, prices. It is listed, and nothing is concluded from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from fairlap.history.across.lines import Entry
from fairlap.machine.differences import lasting
from fairlap.store.stored_rows import RowsOfRun

About = Literal["machine", "run", "version", "setting", "price"]
_UNKNOWN = "not recorded"


class Differing(msgspec.Struct, frozen=True):
    about: About
    what: str
    values: dict[str, str]  # by run


def what_differs(runs: Sequence[RowsOfRun], entries: Sequence[Entry]) -> list[Differing]:
    """Each fact of which not all runs have the same value. A contestant that only one run has differs in nothing."""
    names = [run.run for run in runs]
    machines = {run.run: lasting(run.machine) for run in runs}
    facts = sorted({fact for machine in machines.values() for fact in machine})
    found = [Differing("machine", fact, {name: machines[name].get(fact, _UNKNOWN) for name in names}) for fact in facts]
    found += [Differing("run", what, values) for what, values in _of_runs(runs, entries).items()]
    for contestant in dict.fromkeys(entry.line.contestant for entry in entries):
        own = {entry.line.run: entry for entry in entries if entry.line.contestant == contestant}
        found.append(
            Differing("version", contestant, {run: each.line.version or _UNKNOWN for run, each in own.items()})
        )
        settings = sorted({setting for each in own.values() for setting in each.row.settings})
        found += [
            Differing(
                "setting",
                f"{contestant}: {setting}",
                {run: each.row.settings.get(setting, _UNKNOWN) for run, each in own.items()},
            )
            for setting in settings
        ]
    prices = {run.run: _price_text([each for each in entries if each.line.run == run.run]) for run in runs}
    found.append(Differing("price", "price of an hour", prices))
    return [each for each in found if len(set(each.values.values())) > 1]


def _of_runs(runs: Sequence[RowsOfRun], entries: Sequence[Entry]) -> Mapping[str, dict[str, str]]:
    first = {run.run: next((each for each in entries if each.line.run == run.run), None) for run in runs}
    return {
        "fairlap": {name: each.row.fairlap if each else _UNKNOWN for name, each in first.items()},
        "device": {run.run: run.plan.device for run in runs},
        "threads": {run.run: ", ".join(map(str, run.plan.threads_of_works)) for run in runs},
        "conditions": {run.run: run.plan.headline for run in runs},
    }


def _price_text(entries: Sequence[Entry]) -> str:
    found = next((each.line for each in entries if each.line.price_per_hour is not None), None)
    return "no price" if found is None else f"{found.price_per_hour:.6g} {found.currency}"
