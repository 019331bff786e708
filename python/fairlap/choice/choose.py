"""Race several models on the same labelled data, and say which one to take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import get_args

import msgspec

from fairlap import verdict
from fairlap.errors import InvalidRequest, shown
from fairlap.frameworks.programs.command import require_programs
from fairlap.interrupts import ignore_signals, status_of
from fairlap.machine.facts import machine_facts
from fairlap.machine.hardware.cuda_devices import require_driver
from fairlap.machine.race_lock.lock import one_race
from fairlap.models.sources.opening import bytes_of
from fairlap.models.task_metrics import metric_named
from fairlap.race.around_blocks.best_settings import with_best_settings
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import plan_to_keep
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.sources_from_request import metrics_named
from fairlap.race.progress import Progress, Silence
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.race.scenario_side import sides_asked
from fairlap.race.stopping import Ending
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Share
from fairlap.request.work import Objective
from fairlap.results.choice.choice import Choice
from fairlap.results.choice.choice_of_results import ChoiceQuestion, choice_of
from fairlap.results.decision.required_measured import require_computed
from fairlap.results.decision.requirements import requirements_of
from fairlap.results.prices import price_named
from fairlap.results.results import results_of

CODE = "E_CHOOSE"
BLOCKS = 12
_NOT_ASKED = (
    "target",
    "data",
    "baseline",
    "use",
    "max_slowdown",
    "only_winner",
    "max_drop",
    "groups",
    "corrupt",
    "fresh",
)

ProgressFor = Callable[[Plan, float | None], Progress]


def question_of(
    request: RaceRequest, minimise: str = "", score_margin: str | float = 0.01, max_drop: str | float | None = None
) -> ChoiceQuestion:
    """Parse what is asked, and refuse what a choice does not answer."""
    metrics = metrics_named(request)
    if lacks := [f"--{name}" for name in ("metric", "labels", "inputs") if not getattr(request, name)]:
        raise InvalidRequest(f"candidates are compared by a score; give {' and '.join(lacks)} too", code="E_METRIC")
    if len(metrics) > 1:
        raise InvalidRequest(
            f"candidates are compared by one --metric (got {', '.join(metrics)}); choose once for each of them",
            code="E_METRIC",
        )
    objectives = get_args(Objective)
    if not isinstance(minimise, str) or (minimise and minimise not in objectives):
        raise InvalidRequest(f"--minimise must be one of {', '.join(objectives)} (got {shown(minimise)})", code=CODE)
    if minimise == "cost" and not request.price:
        raise InvalidRequest("--minimise cost needs the price of an hour; give it with --price", code=CODE)
    given = [each.title or "other modes" for each in sides_asked(request) if not each.is_for_choices]
    if given := given + [name for name in _NOT_ASKED if getattr(request, name) != _default_of(name)]:
        raise InvalidRequest(f"a choice does not take {given[0]}; leave it out", code=CODE)
    requirements = requirements_of(request.require) if request.require else ()
    require_computed(requirements, metrics)
    drop = None if max_drop is None else float(Share(max_drop))
    if drop is not None and not metric_named(metrics[0]).best_is_1:
        raise InvalidRequest(
            f"--max-drop bounds scores whose best value is 1, which {metrics[0]} is not; use --require", code=CODE
        )
    return ChoiceQuestion(metrics[0], requirements, minimise or None, float(Share(score_margin)), drop)  # type: ignore[arg-type]


def _default_of(name: str) -> object:
    return next(each.default for each in msgspec.structs.fields(RaceRequest) if each.name == name)


def choose_by_request(
    request: RaceRequest,
    question: ChoiceQuestion,
    progress_for: ProgressFor = lambda plan, longest_s: Silence(),
    notify: Callable[[str], None] = lambda line: None,
) -> Choice:
    """Race the models, which take turns in every round, and judge what was measured, after Ctrl-C as well."""
    price = price_named(request.price) if request.price else None
    plan = _planned(request, notify)
    require_driver(plan.device)
    require_programs(plan.contestants)
    longest_s = Ending(plan, budget_s=request.budget).longest_s
    with one_race(plan.all_devices, wait=request.wait, longest_s=longest_s, notify=notify):
        plan = with_best_settings(plan)
        ending = Ending(plan, budget_s=request.budget)
        began_at = datetime.now(UTC).isoformat(timespec="seconds")
        race = Race(plan, progress := progress_for(plan, ending.longest_s), ending)
        run = Run(plan_to_keep(plan), race.processes, machine_facts(), {}, began_at)
        interrupted = 0
        try:
            with progress:
                race.run()
        except KeyboardInterrupt as interrupt:
            if not race.processes:
                raise
            ignore_signals()  # for what was measured is written now
            interrupted = status_of(interrupt)
    run.wall_s, run.ended_early = race.shares(), race.ended_early
    raced = {(each.contestant, each.work_id) for each in run.processes}
    items = {whose: own for whose, own in race.scores.items.items() if whose in raced}
    file_bytes = {work.id: bytes_of(work.source) for work in plan.works if work.source is not None}
    found = choice_of(results_of(run, began_at, price=price), items, question, file_bytes)
    return _interrupted(found, interrupted, plan) if interrupted else found


def _interrupted(found: Choice, status: int, plan: Plan) -> Choice:
    """Without a recommendation where a candidate was not raced yet."""
    if len(found.candidates) < len(plan.works) * len(plan.contestants):
        message = "interrupted before every candidate was raced"
        found = msgspec.structs.replace(found, recommended=(), reason="not_separated", message=message, blocks=0)
    return msgspec.structs.replace(found, interrupted=True, exit_status=status)


def _planned(request: RaceRequest, notify: Callable[[str], None]) -> Plan:
    """Draw as many blocks as were asked for, else as many as many candidates need for any claim."""
    plan = plan_of(msgspec.structs.replace(request, blocks=request.blocks or BLOCKS), notify)
    _require_candidates(plan, asked_at_several=isinstance(request.batch, tuple) and len(request.batch) > 1)
    models, contestants = len(plan.works), len(plan.contestants)
    alone = contestants == 1
    needed = verdict.blocks_to_claim(contestants=models * contestants, interchangeable=alone)
    if request.blocks is None and needed > BLOCKS:
        return plan_of(msgspec.structs.replace(request, blocks=needed), notify)
    if request.blocks is not None:
        few = verdict.too_few_blocks(request.blocks, models * contestants, interchangeable=alone)
        if few is not None:
            notify(f"{few}; give more --blocks, or leave them out [{few.code}]")
    return plan


def _require_candidates(plan: Plan, *, asked_at_several: bool) -> None:
    if unlabelled := [work.model for work in plan.works if work.source is None or not work.source.metrics]:
        raise InvalidRequest(f"{unlabelled[0]} has no labelled data; name models of your own", code=CODE)
    batches = {work.model: work.batch for work in plan.works}
    if len(set(batches.values())) > 1 and not asked_at_several:
        at = ", ".join(f"{model} at {batch}" for model, batch in batches.items())
        raise InvalidRequest(
            f"candidates would be timed at different batches ({at}); give the same one to all with --batch or --dims, "
            "or in the example inputs of functions",
            code=CODE,
        )
    if len(plan.works) * len(plan.contestants) < 2:
        raise InvalidRequest("there is one candidate; name two models, or two contestants with --on", code=CODE)
