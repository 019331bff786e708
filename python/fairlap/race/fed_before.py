"""Whether what a run was fed is still what its path holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlap.machine.differences import FactDiffers
from fairlap.pipelines.data import DATA_HASH
from fairlap.race.fed_laps import data_for
from fairlap.race.laps import Lap, values_in_force
from fairlap.race.materials import materials_for
from fairlap.race.plan import Plan


def changed_data(plan: Plan, laps: Sequence[Lap], tell: Callable[[str], None] = lambda _: None) -> list[FactDiffers]:
    """Data have no place in a saved run, but every process that was fed kept their hash. Raises what a race would
    when there are no such data here. Drawn data can differ too: with what draws them."""
    found = []
    for work in plan.works if plan.data else ():
        label = work.label
        then = values_in_force((lap for lap in laps if lap.work == label), DATA_HASH)
        if not then:
            continue
        now = data_for(plan, materials_for(work, plan.data_seed, tell)).hash
        if then != [now]:
            found.append(FactDiffers(f"data {plan.data}", " and ".join(then), now))
    return list(dict.fromkeys(found))
