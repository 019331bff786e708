"""Whether a race that goes on until it is decided has decided what is required of other quantities, too."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.race.planning.plan import Plan
from fairlap.race.run import Run
from fairlap.results.results import results_of
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.process_result import ProcessResult
from fairlap.verdict import Slowdown


def are_required_decided(plan: Plan, processes: Sequence[ProcessResult]) -> bool:
    """Check each candidate after these blocks, at the level that their verdict would have if the race ended here.

    More blocks do not decide about a quantity that was not measured.
    """
    if not plan.required or plan.gate is None:
        return True
    baseline = plan.gate.baseline
    results = results_of(Run(plan, list(processes), {}, {}))
    return all(_is_decided(results.of_work(work)[0], baseline, plan) for work in results.works())


def _is_decided(work_result: WorkResult, baseline: str, plan: Plan) -> bool:
    for each in work_result.contestants:
        found = work_result.other_comparisons(each.contestant, baseline)
        for required in plan.required:
            compared = found.get(required.quantity)
            if compared is None:
                continue
            if required.outcome(compared.interval.low, compared.interval.high) is Slowdown.UNDECIDED:
                return False
    return True
