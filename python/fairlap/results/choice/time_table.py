"""Times of an item of all candidates in one table: works take turns in every round of a plan, in drawn order.

Two candidates are compared within a round, so that what the machine does for minutes hits both alike. If they are
equal, the drawn order of works and contestants makes each as likely to be the slower one in a round. That holds for
every pair; of candidates on one model, which share a block, and others it does not hold for all labels together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from fairlap import quantity_text, verdict
from fairlap.race.counted_blocks import block_figures, why_not_claimable
from fairlap.race.planning.plan import Plan
from fairlap.results.decision.evidence import headline_results
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult

_FEWEST_ROUNDS = 2
Names = Mapping[tuple[str, str], str]
"""Of candidates, by the id of a work and the contestant."""


@dataclass(frozen=True)
class TimeTable:
    table: verdict.BlockTable | None
    rounds: int  # in which every candidate has a time
    why_none: str = ""
    code: str = ""


def time_table(results: Results, names: Names) -> TimeTable:
    """Without a table where there is nothing to compare, or where ratios would be those of the load of others.

    A table of too few rounds has ratios, and shows no difference.
    """
    plan, columns, quantities = results.run.plan, {}, {}
    refused: tuple[str, str] | None = None
    rounds = _round_of_block(plan)
    works = [each for each in headline_results(results) if each.basis.ranked]
    for each in works:
        why, code = why_not_claimable(plan, each.basis)
        if code and refused is None:
            refused = why, code
        for contestant, (quantity, by_block) in _figures(each).items():
            name = names[each.work.id, contestant]
            columns[name] = {rounds[block]: ns / each.work.batch for block, ns in by_block.items()}
            quantities[name] = quantity
    whole = sorted(set.intersection(*(set(own) for own in columns.values()))) if columns else []
    if refused is not None:
        return TimeTable(None, len(whole), *refused)
    if len(columns) < 2:
        ranked = quantity_text.count(len(columns), "candidate")
        return TimeTable(None, len(whole), f"{ranked} can be ranked; a verdict needs two")
    if len(whole) < _FEWEST_ROUNDS:
        return TimeTable(None, len(whole), f"{quantity_text.count(len(whole), 'whole round')}; a verdict needs two")
    figures = {
        name: verdict.Figures(quantities[name], [own[number] for number in whole]) for name, own in columns.items()
    }
    alone = all(len(each.basis.ranked) == 1 for each in works)
    try:
        table = verdict.block_table(figures, workload="time of an item", interchangeable=alone)
    except verdict.UnlikeQuantities as error:
        return TimeTable(None, len(whole), str(error), error.code)
    few = verdict.too_few_blocks(table.blocks, len(table.contestants), interchangeable=alone)
    return TimeTable(table, len(whole), *(("", "") if few is None else (str(few), few.code)))


def _round_of_block(plan: Plan) -> dict[int, int]:
    """Return the number of the round in which each block runs; every work has one block in each."""
    seen: Counter[tuple[int, str]] = Counter()
    found = {}
    for block in plan.blocks:
        found[block.number] = seen[block.work, block.conditions]
        seen[block.work, block.conditions] += 1
    return found


def _figures(found: WorkResult) -> dict[str, tuple[str, dict[int, float]]]:
    """By contestant, what its times are of, and its time in each block that all contestants of the work finished."""
    basis = found.basis
    finished = {
        name: {each.block: each for each in basis.processes[name] if each.finished and basis.has_figure(each)}
        for name in basis.ranked
    }
    whole = sorted(set.intersection(*(set(own) for own in finished.values())))
    if not whole:
        return {name: ("", {}) for name in finished}
    figures = block_figures({name: [own[block] for block in whole] for name, own in finished.items()}, basis.judged)
    return {
        name: (each.quantity, dict(zip(whole, map(float, each.values), strict=True))) for name, each in figures.items()
    }
