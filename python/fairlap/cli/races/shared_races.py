"""Races of a suite that are run as one, because their works may share processes.

They have as many blocks each whatever comes out, and differ in their works alone. So it makes no difference to them
whether they are one race, but that the processes of a contestant take the works of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.planning.shared_processes import why_fresh
from fairlap.race.planning.works_from_request import data_seeds_asked
from fairlap.request.race_request import RaceOptions, RaceRequest
from fairlap.request.suite import RaceOfSuite
from fairlap.request.work import Conditions

_OF_WORKS = ("works", "blocks", "modules", "skipped")


@dataclass(frozen=True)
class PlannedRace:
    race: RaceOfSuite
    request: RaceRequest
    plan: Plan | None  # None where the base cannot run it
    why: str = ""
    code: str = ""


Group = tuple[PlannedRace, ...]


def in_groups(races: Sequence[PlannedRace], runs: Sequence[str]) -> list[Group]:
    """Put together, in the order of their first races, those that are run as one. ``runs`` are those broken off."""
    groups: dict[object, list[PlannedRace]] = {}
    for race, run in zip(races, runs, strict=True):
        groups.setdefault((_key(race), run), []).append(race)
    found: list[Group] = []
    for group in groups.values():
        together = len(group) > 1 and _have_different_works(group) and not why_fresh(joined(group))
        found += [tuple(group)] if together else [(race,) for race in group]
    place = {race.race.name: number for number, race in enumerate(races)}
    return sorted(found, key=lambda group: place[group[0].race.name])


def joined(group: Sequence[PlannedRace]) -> Plan:
    """Draw one plan for all of their works; that of a single race is its own."""
    plans = [race.plan for race in group if race.plan is not None]
    first = plans[0]
    if len(plans) == 1:
        return first
    given: dict[str, Any] = {
        name: getattr(first, name) for name in Plan.__struct_fields__ if name not in (*_OF_WORKS, "format")
    }
    return draw_plan(
        **given,
        works=tuple(work for plan in plans for work in plan.works),
        blocks=_blocks(first),
        conditions=_conditions(first),
        data_seeds=data_seeds_asked(group[0].request),
        modules=tuple(dict.fromkeys(module for plan in plans for module in plan.modules)),
        skipped=tuple(dict.fromkeys(each for plan in plans for each in plan.skipped)),
    )


def _key(race: PlannedRace) -> object:
    """Equal for races that may be one; a new object for one that cannot."""
    plan, request = race.plan, race.request
    has_files = bool(request.output or request.keep_weights or request.trace)
    ends_early = plan is None or plan.until_decided or plan.target is not None or request.budget is not None
    if plan is None or ends_early or has_files or plan.gate is not None or plan.required or plan.searches:
        return object()
    options = [repr(getattr(request, name)) for name in RaceOptions.__struct_fields__]
    same = msgspec.structs.replace(plan, works=(), blocks=(), modules=(), skipped=(), seed=0)
    given_seed = plan.seed if request.seed is not None else None
    return (
        msgspec.json.encode(same),
        _blocks(plan),
        _conditions(plan),
        data_seeds_asked(request),
        given_seed,
        tuple(options),
    )


def _have_different_works(group: Sequence[PlannedRace]) -> bool:
    ids = [work.id for race in group if race.plan is not None for work in race.plan.works]
    return len(set(ids)) == len(ids)


def _conditions(plan: Plan) -> Conditions | Literal["both"]:
    return "both" if len({block.conditions for block in plan.blocks}) > 1 else plan.headline


def _blocks(plan: Plan) -> int:
    kinds = {block.conditions for block in plan.blocks}
    return len(plan.blocks) // len(plan.works) // len(kinds)
