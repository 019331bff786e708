"""Which blocks of a work count, and the table of their times that a verdict rests on.

A block counts when every contestant that may be ranked finished in it, and when the noise gate leaves it in. The gate
sees what the parent read from the kernel while each process was measured, and does not know which contestant ran.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.meters import disturbances
from fairlap.meters.stolen_time import StolenTime
from fairlap.race.equal_work.equal_gates import held_alike, held_unlike
from fairlap.race.planning.plan import Plan
from fairlap.race.precision_drop import EXCEEDED, Drop, drop_of, exceeded
from fairlap.race.stolen_time import stolen_time
from fairlap.request.names import BENCHMARK, COMMAND
from fairlap.request.work import Conditions, Work
from fairlap.scenarios.contract import Judged, Unqualified
from fairlap.scenarios.process_result import PERIODS, Outcome, Period, ProcessResult

INPUTS_AT_FAULT = "E_INPUTS_AT_FAULT"
_FEWEST_RANKED = 2
_ALIKE = 10.0  # times apart
_MOST_DROPPED = 0.25  # of the blocks; beyond it noise is what this machine is like


@dataclass(frozen=True)
class GatedBlocks:
    """The blocks that count, and those that the noise gate left out or found noisy."""

    kept: tuple[int, ...]
    dropped: tuple[int, ...] = ()
    noisy: int = 0  # also counts those that had to stay
    causes: Mapping[str, int] = field(default_factory=dict)  # how many blocks each reading spoke against

    def __str__(self) -> str:
        """One line for people; empty when no block was noisy."""
        if not self.noisy:
            return ""
        causes = ", ".join(f"{name} in {count}" for name, count in self.causes.items() if count)
        of_all = f"{self.noisy} of {quantity_text.count(len(self.kept) + len(self.dropped), 'block')}"
        if not self.dropped:
            return f"{of_all} were noisy ({causes}); too many to leave out, so all count"
        if len(self.dropped) < self.noisy:
            return f"{of_all} were noisy ({causes}); the worst {len(self.dropped)} are left out"
        return f"{of_all} left out: {causes}"


@dataclass(frozen=True)
class WorkBlocks:
    """The processes of one work under one kind of conditions, and the table of what can be compared among them."""

    work: Work
    conditions: Conditions
    processes: Mapping[str, tuple[ProcessResult, ...]]  # by contestant, in the plan's order
    judged: Judged  # by which contestants are ranked
    gated: GatedBlocks = GatedBlocks(())
    why_no_verdict: str = ""  # then there is no table
    no_verdict_code: str = ""
    starved: Mapping[Period, str] = field(default_factory=dict)  # why nothing is claimed of what was measured then
    compared: Mapping[str, Sequence[ProcessResult]] = field(default_factory=dict)  # one process for each block
    table: verdict.BlockTable | None = None
    drops: Mapping[str, Drop] = field(default_factory=dict)  # by contestant
    unqualified: Mapping[str, Unqualified] = field(default_factory=dict)  # by contestant
    notices: Mapping[str, tuple[Notice, ...]] = field(default_factory=dict)  # of the scenario, by contestant
    remark: str = ""  # of the figure, in titles
    searched: frozenset[str] = frozenset()  # contestants whose settings a search has chosen

    @property
    def ranked(self) -> list[str]:
        return [name for name, own in self.processes.items() if is_ranked(own) and name not in self.unqualified]

    @property
    def metric(self) -> verdict.Metric:
        return self.judged.metric

    @property
    def is_refused(self) -> bool:
        """Whether no ratio is claimed although there may be figures: because of the machine, or of the inputs."""
        return self.no_verdict_code.startswith("E_")

    @property
    def why_without_code(self) -> str:
        return self.why_no_verdict.removesuffix(f" [{self.no_verdict_code}]")

    def has_figure(self, process: ProcessResult) -> bool:
        """Check for a figure that it may lack: without it, its block does not count."""
        return not self.judged.may_lack or self.judged.read(process) is not None

    @property
    def stolen(self) -> StolenTime:
        """While the judged figure was measured."""
        return self.stolen_in(self.judged.period)

    def stolen_in(self, period: Period) -> StolenTime:
        return stolen_time([process for own in self.processes.values() for process in own], period)


def work_blocks(
    plan: Plan, processes: Sequence[ProcessResult], conditions: Conditions, *, on_any_machine: bool = False
) -> list[WorkBlocks]:
    """One for each work of the plan of which a process has ended under these conditions.

    Where others took too much of the machine there is no table, unless the caller judges ``on_any_machine``.
    """
    every = (_blocks_of(plan, work, processes, conditions) for work in plan.works)
    found = [each for each in every if each is not None]
    return found if on_any_machine else [_claimable(plan, each) for each in found]


def why_not_claimable(plan: Plan, found: WorkBlocks, period: Period | None = None) -> tuple[str, str]:
    """Explain with a code why ratios would be those of the load of others; empty where they are of the contestants.

    Of what was measured in the period, or else of the judged figure.
    """
    every = [process for own in found.processes.values() for process in own]
    return why_not_claimed(plan, found.work, every, found.judged, period)


def why_not_claimed(
    plan: Plan, work: Work, processes: Sequence[ProcessResult], judged: Judged, period: Period | None = None
) -> tuple[str, str]:
    """Likewise of ``processes`` of all contestants on a work under one kind of conditions."""
    stolen = stolen_time(processes, period or judged.period)
    if plan.device != "cpu":
        return stolen.refusal_on_device()
    programs = any(each.framework in (COMMAND, BENCHMARK) for each in plan.contestants)
    return stolen.refusal(
        threads=plan.meeting_threads_of(work),
        whose="programs" if programs else "contestants",
        of_slowest=judged.of_slowest and period in (None, judged.period),
    )


def _claimable(plan: Plan, found: WorkBlocks) -> WorkBlocks:
    """Without a table if its ratios would be those of the load."""
    if (table := found.table) is None:
        return found
    refused = {each: why_not_claimable(plan, found, each) for each in PERIODS}
    found = replace(found, starved={each: f"{why} [{code}]" for each, (why, code) in refused.items() if code})
    why, code = refused[found.judged.period]
    if not code:
        return found
    effects = [each.detectable_effect for each in verdict.judge([table], alpha=plan.alpha)]
    hidden = (
        f"; differences below {quantity_text.share(max(effects))} were not detectable"
        if np.isfinite(effects).all()
        else ""
    )
    return replace(found, table=None, compared={}, why_no_verdict=f"{why}{hidden} [{code}]", no_verdict_code=code)


def design_of(plan: Plan, tables: Sequence[verdict.BlockTable]) -> verdict.Design:
    """How these tables are judged."""
    return verdict.design_so_far(
        tables, alpha=plan.alpha, until_decided=plan.until_decided, only_winner=plan.only_winner, gate=plan.gate
    )


def is_ranked(processes: Sequence[ProcessResult]) -> bool:
    """One process that did other work disqualifies a contestant; one that crashed does not."""
    return any(each.finished for each in processes) and all(each.outcome != "disqualified" for each in processes)


def worst_outcome(processes: Sequence[ProcessResult]) -> Outcome:
    """Choose what happened most often to processes that did not finish; a disqualification outweighs everything."""
    bad = Counter(each.outcome for each in processes if not each.finished)
    if "disqualified" in bad:
        return "disqualified"
    return bad.most_common(1)[0][0] if bad else "finished"


def trouble(processes: Sequence[ProcessResult]) -> str:
    """Describe what went wrong in some of the processes; empty when all finished."""
    bad = [each for each in processes if not each.finished]
    if not bad:
        return ""
    outcome = worst_outcome(processes)
    count = sum(each.outcome == outcome for each in bad)
    message = next(each.message for each in bad if each.outcome == outcome)
    often = "" if count == len(processes) else f" in {count} of {len(processes)} processes"
    return f"{outcome.replace('_', ' ')}{often}: {message}"


def _blocks_of(plan: Plan, work: Work, processes: Sequence[ProcessResult], conditions: Conditions) -> WorkBlocks | None:
    work_id = work.id
    here = [each for each in processes if each.work_id == work_id and each.conditions == conditions]
    if not here:
        return None
    names = [name.text for name in plan.contestants]
    by_contestant = {name: tuple(each for each in here if each.contestant == name) for name in names}
    by_contestant = {name: own for name, own in by_contestant.items() if own}
    precisions = {name.text: name.precision for name in plan.contestants}
    drops = {
        name: drop_of(plan, work.in_precision(precisions[name]), own, processes) for name, own in by_contestant.items()
    }
    unqualified = {name: Unqualified(why, EXCEEDED) for name, drop in drops.items() if (why := exceeded(plan, drop))}
    may_rank = [name for name, own in by_contestant.items() if is_ranked(own) and name not in unqualified]
    ruling = plan.scenario(work).judge(plan, work, by_contestant, may_rank)
    judged, unqualified = ruling.judged, {**ruling.unqualified, **unqualified}
    searched = frozenset(name.text for name in plan.contestants if name.best)
    found = WorkBlocks(
        work,
        conditions,
        by_contestant,
        judged,
        drops=drops,
        unqualified=unqualified,
        notices=ruling.notices,
        remark=ruling.remark,
        searched=searched,
    )
    ranked = {
        name: {each.block: each for each in own if each.finished and found.has_figure(each)}
        for name, own in by_contestant.items()
        if name in found.ranked
    }
    complete = sorted(set.intersection(*(set(own) for own in ranked.values()))) if ranked else []
    held = [block for block in complete if _held_alike(ranked, block)]
    if len(held) < 2 <= len(complete):
        unlike = next(block for block in complete if block not in held)
        quantity = next(iter(ranked.values()))[unlike].headline_quantity
        who = held_unlike({name: own[unlike] for name, own in ranked.items()}, quantity)
        code = verdict.UnlikeQuantities.code
        why = f"spans with launch gaps in them and spans without are not compared ({who}); use --method context_span"
        return replace(found, gated=GatedBlocks(tuple(held)), why_no_verdict=f"{why} [{code}]", no_verdict_code=code)
    complete = held
    gated = GatedBlocks(tuple(complete))
    if len(ranked) < _FEWEST_RANKED:
        dropped = sum(each.code == EXCEEDED for each in unqualified.values())
        if why := inputs_at_fault(work, by_contestant):
            why = f"{why} [{INPUTS_AT_FAULT}]"
            return replace(found, gated=gated, why_no_verdict=why, no_verdict_code=INPUTS_AT_FAULT)
        kept_out = f", and {dropped} lost more than --max-drop allows" if dropped else ""
        why = f"{quantity_text.count(len(ranked), 'contestant')} can be ranked{kept_out}; a comparison needs two"
        code = verdict.ONE_RANKED if len(by_contestant) > 1 else ""  # one alone asks for no verdict
        return replace(found, gated=gated, why_no_verdict=f"{why} [{code}]" if code else why, no_verdict_code=code)
    if complete and not plan.until_decided:  # its blocks are drawn into looks as they come, and all of them count
        gated = gate_blocks(
            complete, here, works=len(plan.works), contestants=len(ranked), alpha=plan.alpha, period=judged.period
        )
    if len(gated.kept) < 2:
        complete_blocks = quantity_text.count(len(gated.kept), "complete block")
        longer = "a longer --budget" if plan.until_decided else "more --blocks"
        code = verdict.TooFewBlocks.code
        why = f"{complete_blocks}: it takes two to compare, and six to claim a difference; give {longer} [{code}]"
        return replace(found, gated=gated, why_no_verdict=why, no_verdict_code=code)
    compared = {name: [own[block] for block in gated.kept] for name, own in ranked.items()}
    try:
        table = verdict.block_table(block_figures(compared, judged), metric=judged.metric, workload=work_id)
        table = replace(table, halves={name: halves_of(own, judged) for name, own in compared.items()})
    except verdict.UnlikeQuantities as error:  # in a run of an older fairlap
        return replace(found, gated=gated, why_no_verdict=f"{error} [{error.code}]", no_verdict_code=error.code)
    return replace(found, gated=gated, compared=compared, table=table)


def _held_alike(ranked: Mapping[str, Mapping[int, ProcessResult]], block: int) -> bool:
    processes = [own[block] for own in ranked.values()]
    return held_alike(processes, processes[0].headline_quantity)


def inputs_at_fault(work: Work, by_contestant: Mapping[str, Sequence[ProcessResult]]) -> str:
    """Why nothing is wrong with the contestants, where all answers to a model of one's own are off, and off alike."""
    if work.source is None or len(by_contestant) < _FEWEST_RANKED:
        return ""
    off = []
    for processes in by_contestant.values():
        wrong = [each for each in processes if each.outcome == "disqualified" and each.code == "E_OUTPUT"]
        errors = [error.distance for each in wrong for error in each.errors if not error.right]
        if not errors or not math.isfinite(max(errors)):
            return ""
        off.append(max(errors))
    if max(off) > _ALIKE * min(off):
        return ""
    least, most = (quantity_text.relative_error(each) for each in (min(off), max(off)))
    return (
        f"all {len(off)} contestants differ from the reference by about as much (relative error {least} to {most}), so "
        "the inputs are at fault, or the reference, and not the contestants; give inputs such as the model was made "
        "for, with --range or --inputs"
    )


def block_figures(compared: Mapping[str, Sequence[ProcessResult]], judged: Judged) -> dict[str, verdict.Figures]:
    """Collect each contestant's times, with the one quantity that all of its processes were measured by."""
    if not judged.of_rounds:
        return {
            name: verdict.Figures(judged.metric.name, [judged.figure_ns(process) for process in own])
            for name, own in compared.items()
        }
    times_ns = block_times_ns(compared)
    return {
        name: verdict.Figures(
            verdict.one_quantity({f"{name} in block {each.block}": each.headline_quantity for each in own}),
            times_ns[name],
        )
        for name, own in compared.items()
    }


def halves_of(processes: Sequence[ProcessResult], judged: Judged) -> npt.NDArray[np.float64]:
    """See ``verdict.find_modes``."""
    return np.stack([_halves(each) if judged.of_rounds else np.zeros(2) for each in processes])


def _halves(process: ProcessResult) -> npt.NDArray[np.float64]:
    """Of a process that had one turn they count as equal to the whole if no episode can be most of it."""
    if process.rounds_ns:
        return verdict.halves_of_rounds(process.rounds_ns)
    lasts = process.phases_s.get("measured", math.inf) > 2 * verdict.EPISODE_S
    return np.full(2, 0.0 if lasts else np.nan)


def block_times_ns(compared: Mapping[str, Sequence[ProcessResult]]) -> dict[str, list[float]]:
    """Build a block's figures from its rounds if its contestants took turns, so that its noise cancels."""
    figures: dict[str, list[float]] = {name: [] for name in compared}
    for block in zip(*compared.values(), strict=True):
        if all(process.rounds_ns for process in block) and len({len(process.rounds_ns) for process in block}) == 1:
            logs = verdict.block_figures(np.log([process.rounds_ns for process in block]))
            times_ns = np.exp(logs).tolist()
        else:
            times_ns = [process.headline_ns for process in block]
        for name, time_ns in zip(compared, times_ns, strict=True):
            figures[name].append(time_ns)
    return figures


def gate_blocks(
    blocks: Sequence[int],
    processes: Sequence[ProcessResult],
    *,
    works: int = 1,
    contestants: int = 2,
    alpha: float = verdict.ERROR_RATE,
    period: Period = "turns",
) -> GatedBlocks:
    """Leave out the noisiest blocks by their readings, blind to which contestant ran.

    At most a quarter goes, the noisiest first, and never so many that too few are left to claim a difference: every
    block is a fair one, and noise only widens the interval.
    """
    readings = _readings(blocks, processes, period)
    if not readings:
        return GatedBlocks(tuple(blocks))
    outcome = verdict.noise_gate(readings)
    noisy = [place for place in np.argsort(-outcome.excess, kind="stable") if not outcome.kept[place]]
    fewest = verdict.blocks_to_claim(works, alpha=alpha, contestants=contestants)
    allowed = min(int(_MOST_DROPPED * len(blocks)), max(len(blocks) - fewest, 0))
    dropped = tuple(sorted(blocks[place] for place in noisy[:allowed]))
    kept = tuple(block for block in blocks if block not in dropped)
    return GatedBlocks(kept, dropped, len(noisy), dict(outcome.dropped_by) if noisy else {})


def _readings(
    blocks: Sequence[int], processes: Sequence[ProcessResult], period: Period
) -> Mapping[str, npt.NDArray[np.float64]]:
    """Shaped (blocks, processes); NaN where a process was not read."""
    by_block = [[process for process in processes if process.block == block] for block in blocks]
    names = sorted({name for process in processes for name in process.readings(period)} & set(disturbances.OF_BLOCKS))
    width = max((len(block) for block in by_block), default=0)
    found = {name: np.full((len(blocks), width), np.nan) for name in names}
    for row, block in enumerate(by_block):
        for column, process in enumerate(block):
            read = process.readings(period)
            for name in found.keys() & read.keys():
                found[name][row, column] = read[name]
    return found
