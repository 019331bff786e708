"""The race of a change against its base over all benchmarks of a suite, block by block, until the change is decided.

Block i of the suite is block i of every benchmark, in drawn order; the decision is looked at after each.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap import quantity_text, verdict
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.frameworks.programs.command import require_programs
from fairlap.frameworks.suites.child_process import BenchmarkSkipped
from fairlap.judgement.judge_request import E_JUDGE, JudgeRequest, SearchedQuantity
from fairlap.judgement.judgement import BenchmarkSpeedup, Judgement, decided
from fairlap.judgement.race_of_sides import Question, failure, figures_of, log_speedups, missing_table, trades
from fairlap.judgement.wording import interval_ends, judgement_of, next_after, ratio_word
from fairlap.pull_request.checkouts import NoBaseline
from fairlap.pull_request.sides import BASE, CHANGE, request_between
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.progress import Silence
from fairlap.race.race import Race
from fairlap.request.race_request import DEFAULT_BUDGET_S, LONGEST_BY_DEFAULT_S
from fairlap.request.suite import FoundRace, LeftOut, Selection, Suite

Logs = Mapping[str, npt.NDArray[np.float64]]
_OVER = object()


@dataclass(frozen=True)
class PlannedSuite:
    """The plan of each benchmark, and the largest slowdown that it may have."""

    plans: Mapping[str, Plan]
    bounds: Mapping[str, float]
    blocks_given: bool
    left_out: tuple[LeftOut, ...] = ()

    @property
    def device(self) -> str:
        return max(plan.device for plan in self.plans.values())  # "cuda..." is after "cpu"

    def usual_s(self, budget_s: float | None) -> float:
        """How long a race may take once it has enough blocks; infinite where blocks were asked for."""
        if budget_s is not None:
            return budget_s
        return math.inf if self.blocks_given else DEFAULT_BUDGET_S * len(self.plans)

    def longest_s(self, budget_s: float | None) -> float:
        """How long it may take in all, while too few blocks have run to keep anything."""
        usual_s = self.usual_s(budget_s)
        return usual_s if budget_s is not None else max(usual_s, LONGEST_BY_DEFAULT_S * len(self.plans))


def planned_suite(
    suite: Suite, request: JudgeRequest, base: Path, change: Path, notify: Callable[[str], None]
) -> PlannedSuite:
    """Everything that is wrong with any benchmark is an error here, before a share of a ledger is spent.

    Existing benchmarks that the base skips, or does not run, are left out; the change has to run all others.
    """
    sides = {BASE: base, CHANGE: change}
    given = {"threads": request.threads, "blocks": request.blocks, "seconds": request.seconds}
    own: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    plans, bounds = {}, {}
    left_out: list[LeftOut] = []
    selection = Selection(only=request.only)
    for race in suite.selected(selection, "two sides"):
        race = msgspec.structs.replace(race, pass_env=(*race.pass_env, *request.pass_env), **own)
        try:
            found = request_between(race, sides, tried=(BASE,))
            plan = plan_of(msgspec.structs.replace(found, max_slowdown=None, budget=request.budget), notify)
            require_programs(plan.contestants)
        except (BenchmarkSkipped, NoBaseline) as error:
            if not isinstance(race, FoundRace):
                raise NoBaseline(f"{race.name}: {error}") from None
            skipped = "skipped: " if isinstance(error, BenchmarkSkipped) else ""
            left_out.append(LeftOut(race.name, f"{skipped}{error}"))
            continue
        except FairlapError as error:
            raise InvalidRequest(f"{race.name}: {error}", code=error.code) from None
        if len(plan.works) != 1 or found.conditions == "both":
            raise InvalidRequest(f"{race.name} races several works or conditions; give it one", code=E_JUDGE)
        plans[race.name], bounds[race.name] = plan, float(found.max_slowdown or verdict.MAX_SLOWDOWN)
    if not plans:
        raise NoBaseline(f"{suite.path}: no benchmark is left: {left_out[0].name}: {left_out[0].why}")
    of_others = suite.left_out(selection, "two sides")
    blocks_given = any(not plan.until_decided for plan in plans.values())
    return PlannedSuite(plans, bounds, blocks_given, (*left_out, *of_others))


def raced_suite(
    suite: PlannedSuite, question: Question, budget_s: float | None, notify: Callable[[str], None]
) -> Judgement:
    """Race both sides on all benchmarks, and judge the change by what was measured."""
    races = {name: Race(plan, Silence()) for name, plan in suite.plans.items()}
    budget = _Budget(suite, question, budget_s)
    rng = random.Random(next(iter(suite.plans.values())).seed)
    most, began_s, ended = min(len(plan.blocks) for plan in suite.plans.values()), time.monotonic(), True
    with ExitStack() as stack:
        running = {name: stack.enter_context(closing(race.in_blocks())) for name, race in races.items()}
        for block in range(1, most + 1):
            for name in rng.sample(list(races), len(races)):
                if next(running[name], _OVER) is _OVER or _has_failed(races[name]):
                    return judged_suite(suite, races, question, ended=True, seconds=time.monotonic() - began_s)
            notify(f"block {block} is over, of each of {quantity_text.count(len(races), 'benchmark')}")
            logs = _logs(races, question.quantity)
            ended = (
                logs is None
                or verdict.decision_over_suite(logs, suite.bounds, question.gain, question.level, ended=False)
                == "undecided"
            )
            if not ended or budget.is_spent(block):
                break
    return judged_suite(suite, races, question, ended=ended, seconds=time.monotonic() - began_s)


def judged_suite(
    suite: PlannedSuite, races: Mapping[str, Race], question: Question, *, ended: bool, seconds: float
) -> Judgement:
    """Judge what has run; ``ended`` where it ended for a reason that is blind to its figures."""
    figures = figures_of(question, suite.plans.values(), seconds) | {"left_out": suite.left_out}
    for name, race in races.items():
        if (failed := failure(race.processes, figures, f"{name}: ")) is not None:
            return failed
    for name, race in races.items():
        if (missing := missing_table(race.plan, race.processes, question.quantity, figures, f"{name}: ")) is not None:
            return missing
    logs = _logs(races, question.quantity)
    if logs is None:
        return decided("undecided", "not_comparable", "the benchmarks share fewer than two blocks", **figures)
    found = verdict.candidate_over_suite(logs, suite.bounds, gain=question.gain, level=question.level, ended=ended)
    mean = np.exp(verdict.mean_log_speedups(logs))
    traded = (text for name, race in races.items() for text in trades(race.plan, race.processes, f"{name}: "))
    figures |= {"speedups": tuple(mean.tolist()), "ended_undecided": ended, "trades": tuple(traded)}
    judgement = judgement_of(found.mean, figures, seconds_each=seconds / mean.size)
    judgement = msgspec.structs.replace(judgement, benchmarks=_benchmarks(suite, logs, found))
    fewest = verdict.fewest_blocks_over_suite(len(logs), question.level, ended=ended)
    if found.slower:
        return msgspec.structs.replace(
            judgement, reason="benchmark_slower", message=_slower_text(suite, found, question.quantity)
        )
    if found.mean.decision == "undecided" and mean.size < fewest:
        message = f"too few blocks to show a slowdown of any benchmark, which takes {fewest}"
        following = next_after(max(fewest, found.mean.blocks_needed or 0), seconds / mean.size)
        return msgspec.structs.replace(judgement, reason="too_few_blocks", message=message, next=following)
    return judgement


class _Budget:
    """As long as one benchmark may take, for each of them; longer while too few blocks have run to keep anything."""

    def __init__(self, suite: PlannedSuite, question: Question, budget_s: float | None) -> None:
        self._usual_s, self._longest_s = suite.usual_s(budget_s), suite.longest_s(budget_s)
        self._fewest = verdict.fewest_blocks_over_suite(len(suite.plans), question.level, ended=True)
        self._began_s = self._last_s = time.monotonic()

    def is_spent(self, blocks: int) -> bool:
        """Check after a block; another one is expected to take as long as it did."""
        now_s = time.monotonic()
        took_s, self._last_s = now_s - self._last_s, now_s
        return now_s + took_s - self._began_s > (self._longest_s if blocks < self._fewest else self._usual_s)


def _has_failed(race: Race) -> bool:
    return any(not each.finished for each in race.processes)


def _logs(races: Mapping[str, Race], quantity: SearchedQuantity) -> Logs | None:
    """Of the blocks that all benchmarks have; None where that are fewer than two."""
    by_block = {name: log_speedups(race.plan, race.processes, quantity) for name, race in races.items()}
    shared = sorted(set.intersection(*(set(each) for each in by_block.values())))
    if len(shared) < 2:
        return None
    return {name: np.array([own[block] for block in shared]) for name, own in by_block.items()}


def _benchmarks(suite: PlannedSuite, logs: Logs, found: verdict.CandidateOverSuite) -> tuple[BenchmarkSpeedup, ...]:
    return tuple(
        BenchmarkSpeedup(
            name=name,
            speedup=each.speedup,
            interval=interval_ends(each.interval),
            max_slowdown=suite.bounds[name],
            slower=each.slower,
            speedups=tuple(np.exp(logs[name]).tolist()),
        )
        for name, each in found.benchmarks.items()
    )


def _slower_text(suite: PlannedSuite, found: verdict.CandidateOverSuite, quantity: SearchedQuantity) -> str:
    texts = []
    for name in found.slower:
        each = found.benchmarks[name]
        speedup = quantity_text.ratio_interval(each.speedup, each.interval.low, each.interval.high)
        bound = quantity_text.share(suite.bounds[name], 3)
        texts.append(f"{name} is worse by more than {bound}: {ratio_word(quantity)} {speedup}")
    return "; ".join(texts)
