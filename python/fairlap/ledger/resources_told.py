"""What a contestant took beside time, in words under its line in a terminal, with the figures of its row. Nothing for
what was not asked or read."""

from __future__ import annotations

from fairlap.engine import digits
from fairlap.ledger.energy_of_row import energy_of
from fairlap.ledger.feeding_of_row import feeding_of, stall_shares_of
from fairlap.ledger.schema import Estimate
from fairlap.race.fed_figures import NO_CAUSE_TOLD, WORK
from fairlap.race.plan import Work
from fairlap.race.results import Contender


def resources_told(work: Work, contender: Contender) -> list[str]:
    return [*_feeding(contender), *_smallest_memory(contender), *_energy(work, contender)]


def _feeding(contender: Contender) -> list[str]:
    told = feeding_of(contender)
    rate, waited = (told[name].value for name in ("pipeline_throughput_per_s", "waited_share"))
    if rate is None or waited is None:
        return []
    pipeline = next((lap.in_force["feed"] for lap in contender.finished if "feed" in lap.in_force), "a pipeline")
    shares = {name: share for name, share in stall_shares_of(contender).items() if name not in (WORK, NO_CAUSE_TOLD)}
    causes = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    for_what = f" ({causes})" if causes else ""
    return [f"fed by {pipeline}: {_count(rate.value)} items/s, waited {waited.value:.1%} of the time{for_what}"]


def _smallest_memory(contender: Contender) -> list[str]:
    found = contender.smallest_memory
    if found is None:
        return []
    tries = digits.counted(found.tries, "fresh start")
    if found.bytes is None:
        return [f"smallest memory unknown after {tries}: {found.why}"]
    size, finer = (f"{each / 1e6:,.0f} MB" for each in (found.bytes, found.resolution_bytes))
    return [f"runs in {size} ({found.limit}, to {finer}, {tries})"]


def _energy(work: Work, contender: Contender) -> list[str]:
    if not any(lap.energy for lap in contender.finished):
        return []
    told = energy_of(contender, work)
    joules, watts, idle = (told[name] for name in ("energy_per_item_j", "mean_power_w", "idle_power_w"))
    if joules.value is None:
        return [f"energy {joules.why}"]
    beside = f"idle {_watts(idle.value)}" if idle.value is not None else f"idle power {idle.why}"
    return [f"energy {_joules(joules.value)} an item, {_watts(watts.value)} while timed ({beside})"]


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _joules(told: Estimate) -> str:
    return _scaled(told, ((1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ")))


def _watts(told: Estimate) -> str:
    return _scaled(told, ((1.0, "W"),))


def _scaled(told: Estimate, units: tuple[tuple[float, str], ...]) -> str:
    size, unit = next((each for each in units if told.value >= each[0]), units[-1])
    ends = "" if told.low is None or told.high is None else f" [{told.low / size:.3g}, {told.high / size:.3g}]"
    return f"{told.value / size:.3g} {unit}{ends}"
