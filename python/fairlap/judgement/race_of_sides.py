"""The race of a change against its base, which ends when the change is decided, and what it shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap import verdict
from fairlap.errors import FairlapError
from fairlap.judgement.judge_request import JudgeRequest, SearchedQuantity
from fairlap.judgement.judgement import Judgement, decided
from fairlap.judgement.wording import judgement_of
from fairlap.launch.worker_process import E_BUDGET
from fairlap.meters.stolen_time import E_BUSY_MACHINE, E_GPU_THROTTLED, E_THROTTLED
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.pull_request.sides import BASE, CHANGE, callables, programs
from fairlap.race.counted_blocks import WorkBlocks, trouble, work_blocks, worst_outcome
from fairlap.race.planning.plan import Plan
from fairlap.race.progress import Progress
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.race.stopping import DECIDED, Ending
from fairlap.request.work_title import compared_with
from fairlap.results.quantities.other_quantities import CPU_TIME, PEAK_MEMORY, TIME_TO_FIRST_INFERENCE, figure_of
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult

# Which quantity of a race decides about a change: the time, or what it takes of the processor or of memory.
_METRICS: Mapping[SearchedQuantity, verdict.Metric] = {
    "cpu_time": CPU_TIME,
    "memory_peak": PEAK_MEMORY,
    "time_to_first": TIME_TO_FIRST_INFERENCE,
    "compile_time": verdict.COMPILE_TIME,
}


class QuantityAbsent(FairlapError):
    """A process has no figure of the quantity that is to decide."""

    code = "E_QUANTITY"


def table_by(quantity: SearchedQuantity, found: WorkBlocks) -> verdict.BlockTable | None:
    """Make the table of what decides, by block; None where the race has none."""
    if quantity == "wall" or found.table is None:
        return found.table
    metric = _METRICS[quantity]
    figures = {
        side: verdict.Figures(metric.name, [_figure(metric, found, each) for each in own])
        for side, own in found.compared.items()
    }
    return verdict.block_table(figures, metric=metric, workload=found.work.id)


def counts_on_a_busy_machine(quantity: SearchedQuantity) -> bool:
    """Whether it is the same however much of the processors others take."""
    return quantity == "memory_peak"


def _figure(metric: verdict.Metric, found: WorkBlocks, process: ProcessResult) -> float:
    value = figure_of(metric, process, found.work)
    if value is None:
        why = process.elsewhere
        if metric == PEAK_MEMORY:
            why = process.memory.absent.get("peak", "")
        elif metric == verdict.COMPILE_TIME:
            why = "it compiles nothing before its first call"
        raise QuantityAbsent(
            f"the {metric.name} of {process.contestant} is unknown: {why or 'this system does not report it'}; "
            "judge it by another --quantity"
        )
    return value


@dataclass(frozen=True)
class Question:
    """A change has to be faster by more than the gain; that it is, is tested at the level."""

    gain: float
    level: float
    quantity: SearchedQuantity = "wall"  # a change that is faster needs less of it


class DecidedEnding(Ending):
    """Ends a race as soon as it is decided whether to keep the change."""

    def __init__(self, plan: Plan, question: Question, budget_s: float | None = None) -> None:
        super().__init__(plan, budget_s=budget_s)
        self._question = question

    @property
    def _fewest_blocks(self) -> int:
        return verdict.fewest_blocks(self._question.level, ended=True)

    def _decided(self, bases: Iterable[Sequence[WorkBlocks]]) -> bool:
        asked = self._question
        tables = [table_by(asked.quantity, basis) for kind in bases for basis in kind]
        return bool(tables) and all(
            table is not None
            and verdict.decision_after(np.log(_speedups(table)), asked.gain, asked.level, ended=False) != "undecided"
            for table in tables
        )


def planned(request: JudgeRequest, base: Path, change: Path, notify: Callable[[str], None]) -> Plan:
    """Everything that is wrong with the benchmark is an error here, before a share of a ledger is spent."""
    sides, benchmark = {BASE: base, CHANGE: change}, request.benchmark
    contestants: Mapping[str, Any] = (
        programs(benchmark.command, sides, benchmark.reported, request.pass_env)
        if benchmark.command
        else callables(benchmark.call, sides)
    )
    return plan_between(contestants, request, notify)


def plan_between(contestants: Mapping[str, Any], request: JudgeRequest, notify: Callable[[str], None]) -> Plan:
    """Plan the race of both sides, which are given as fields of a request."""
    from fairlap.frameworks.programs.command import require_programs
    from fairlap.race.planning.plan_from_request import plan_of
    from fairlap.request.race_request import RaceRequest

    benchmark = request.benchmark
    options: dict[str, Any] = {
        "threads": request.threads,
        "budget": request.budget,
        "blocks": request.blocks,
        "seconds": request.seconds,
        "reported": benchmark.reported or None,
        "inputs": benchmark.inputs or None,
        "reference": benchmark.reference or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    race_request = RaceRequest(
        **given, **contestants, baseline=BASE, same_output=benchmark.same_output, pass_env=request.pass_env
    )
    plan = plan_of(race_request, notify)
    require_programs(plan.contestants)
    return plan


def raced(
    plan: Plan, question: Question, budget_s: float | None, progress_for: Callable[[Plan, float | None], Progress]
) -> Judgement:
    """Race both sides, and judge the change by what was measured."""
    ending = DecidedEnding(plan, question, budget_s)
    began_s = time.monotonic()
    with progress_for(plan, ending.longest_s) as progress:
        race = Race(plan, progress, ending)
        race.run()
    seconds = time.monotonic() - began_s
    return judged(plan, race.processes, question, ended=race.ended_early != DECIDED, seconds=seconds)


def judged(
    plan: Plan, processes: Sequence[ProcessResult], question: Question, *, ended: bool, seconds: float
) -> Judgement:
    """Judge what has run; ``ended`` where the race ended for a reason that is blind to its figures."""
    figures = figures_of(question, [plan], seconds)
    if (failed := failure(processes, figures)) is not None:
        return failed
    if (missing := missing_table(plan, processes, question.quantity, figures)) is not None:
        return missing
    logs = np.array(list(log_speedups(plan, processes, question.quantity).values()))
    speedups = np.exp(logs)
    shown = verdict.candidate(np.log(speedups), gain=question.gain, level=question.level, ended=ended)
    figures |= {"speedups": tuple(speedups.tolist()), "ended_undecided": ended, "trades": trades(plan, processes)}
    return judgement_of(shown, figures, seconds_each=seconds / max(len({each.block for each in processes}), 1))


def trades(plan: Plan, processes: Sequence[ProcessResult], of: str = "") -> tuple[str, ...]:
    """Write what the faster side is shown to cost."""
    found = results_of(Run(plan, list(processes), {}, {}))
    return tuple(f"{of}{text}" for work in found.works() for text in found.of_work(work)[0].trades)


def failure(processes: Sequence[ProcessResult], figures: Mapping[str, Any], of: str = "") -> Judgement | None:
    """Discard a change that failed or answered wrong; raises where the base did. ``of`` names one of several races."""
    own = {side: [each for each in processes if each.contestant == side] for side in (BASE, CHANGE)}
    if not any(each.finished for each in own[BASE]) or worst_outcome(own[BASE]) == "disqualified":
        why = trouble(own[BASE]).removeprefix("failed: ") or "no process of it ended"
        raise NoBaseline(f"{of}the base cannot be raced: {why}")
    failed = [each for each in own[CHANGE] if not each.finished and each.code != E_BUDGET]
    if not failed:
        return None
    wrong = any(each.code == "E_OUTPUT" for each in failed)
    code, message = "E_OUTPUT" if wrong else failed[0].code, f"{of}{trouble(failed)}"
    return decided("discard", "wrong_answers" if wrong else "change_failed", message, code=code, **figures)


def figures_of(question: Question, plans: Iterable[Plan], seconds: float) -> dict[str, Any]:
    """Make the fields that a judgement has whatever it decides."""
    return {
        "quantity": question.quantity,
        "gain": question.gain,
        "level": question.level,
        "seconds": seconds,
        "answers_compared": all(
            work.is_model or bool(compared_with(work, plan.contestants)) for plan in plans for work in plan.works
        ),
    }


def missing_table(
    plan: Plan, processes: Sequence[ProcessResult], quantity: SearchedQuantity, figures: Mapping[str, Any], of: str = ""
) -> Judgement | None:
    """Explain why nothing was compared; None where it was."""
    found, table = _blocks(plan, processes, quantity)
    if table is not None:
        return None
    code = found.no_verdict_code if found is not None else ""
    why = found.why_without_code if found is not None else "no block ended"
    is_busy = code in (E_BUSY_MACHINE, E_THROTTLED, E_GPU_THROTTLED)
    return decided("undecided", "busy_machine" if is_busy else "not_comparable", f"{of}{why}", code=code, **figures)


def log_speedups(plan: Plan, processes: Sequence[ProcessResult], quantity: SearchedQuantity) -> dict[int, float]:
    """By block, in the order in which they ran; empty where nothing was compared."""
    found, table = _blocks(plan, processes, quantity)
    if found is None or table is None:
        return {}
    return dict(zip(found.gated.kept, np.log(_speedups(table)).tolist(), strict=True))


def _blocks(
    plan: Plan, processes: Sequence[ProcessResult], quantity: SearchedQuantity
) -> tuple[WorkBlocks | None, verdict.BlockTable | None]:
    found = work_blocks(plan, processes, plan.headline, on_any_machine=counts_on_a_busy_machine(quantity))
    return (found[0], table_by(quantity, found[0])) if found else (None, None)


def _speedups(table: verdict.BlockTable) -> npt.NDArray[np.float64]:
    """Of each block, in the order in which they ran; a ledger keeps them, and what is judged are their logarithms."""
    sign = 1.0 if table.metric.better == "lower" else -1.0
    base, change = (table.log_figures[:, table.contestants.index(side)] for side in (BASE, CHANGE))
    found: npt.NDArray[np.float64] = np.exp(sign * (base - change))
    return found
