"""Whether a race will measure what is required of it, as far as that is known before it begins."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairlap import verdict
from fairlap.errors import InvalidRequest
from fairlap.models.modes import MODES
from fairlap.race.planning.plan import Plan
from fairlap.request.commands import reports_of
from fairlap.request.names import COMMAND
from fairlap.request.work import Work
from fairlap.results.decision.gate_findings import E_QUANTITY, require_known
from fairlap.results.decision.requirements import Requirement
from fairlap.results.quantities.other_quantities import (
    ENERGY,
    FIRST_ANSWERS,
    QUANTITIES_OF_A_DEVICE,
    core_quantity_keys,
)

_OF_A_DEVICE = frozenset(each.key for each in QUANTITIES_OF_A_DEVICE)
_FIRST = {each.key: answer for answer, each in FIRST_ANSWERS.items()}


def require_measured(plan: Plan) -> None:
    """Refuse a requirement on a quantity that this race does not measure, in one line and before it takes its time.

    What only a process can show, such as whether a framework compiles, is reported after the race.
    """
    require_known(plan.required)
    for required in plan.required:
        for work in plan.works:
            if why := _why_not(plan, work, required.quantity):
                raise InvalidRequest(f"{required.text}: {why}", code=E_QUANTITY)


def require_computed(requirements: Sequence[Requirement], metrics: Collection[str]) -> None:
    """Refuse a limit on a metric that a race with these metrics does not compute, before it takes its time."""
    for each in requirements:
        if lacking := each.lacks_metric(metrics):
            has = f"it has {', '.join(metrics)}" if metrics else f"give --metric {lacking}, with --labels and --inputs"
            raise InvalidRequest(f"{each.text}: this race does not compute {lacking}; {has}", code=E_QUANTITY)


def metrics_of(plan: Plan) -> tuple[str, ...]:
    of_works = (name for work in plan.works if work.source is not None for name in work.source.metrics)
    return tuple(dict.fromkeys((*plan.metrics, *of_works)))


def _why_not(plan: Plan, work: Work, quantity: str) -> str:
    if quantity == verdict.LATENCY.key and not reports_of(plan.contestants):
        return "contestants are ranked by the time of a call, which --max-slowdown bounds; leave it out"
    if quantity in _OF_A_DEVICE and plan.device == "cpu":
        return "it is measured on a GPU only, and this race is on the CPU; leave it out, or give --device cuda"
    if quantity in _FIRST and _FIRST[quantity] != MODES[work.mode].first_answer:
        other = FIRST_ANSWERS[MODES[work.mode].first_answer].key
        return f"{work.label} does not measure it; write {other}"
    if quantity == verdict.COMPILE_TIME.key and any(name.framework == COMMAND for name in plan.contestants):
        return "how long a command compiles is not known; leave it out"
    if quantity == ENERGY.key:
        return _why_no_energy(plan.device)
    of_scenario = {each.metric.key for each in plan.scenario(work).quantities}
    if quantity not in of_scenario and quantity not in core_quantity_keys():
        return f"{work.label} does not measure it; leave it out"
    return ""


def _why_no_energy(device: str) -> str:
    from fairlap.meters.energy import EnergyMeter

    meter = EnergyMeter(device, clock="monotonic_raw")  # it needs no calibration
    return "" if meter.sensors else f"no sensor here measures energy ({meter.absent}); leave it out"
