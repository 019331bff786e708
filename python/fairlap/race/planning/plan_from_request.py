"""The plan that is drawn from a request."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from fairlap import quantity_text
from fairlap.errors import InvalidRequest
from fairlap.launch.packages.origins import with_pinned_origins
from fairlap.launch.runners import require_known, require_modes
from fairlap.machine.control_group import cores_worth
from fairlap.machine.hardware.locked_clocks import require_clock
from fairlap.race.around_blocks.recompile_request import called_on, require_free_sizes
from fairlap.race.equal_work.fed_check import require_choices, require_data
from fairlap.race.operations import require_operation_options, selected_models
from fairlap.race.planning.custom_libraries import require_used, with_libraries_found
from fairlap.race.planning.file_contestants import on_files
from fairlap.race.planning.plan import Limits, Measuring, Plan
from fairlap.race.planning.plan_drawing import draw_plan, require_blocks
from fairlap.race.planning.plan_modules import modules_of, require_not_hidden
from fairlap.race.planning.plan_required import changes_and_limits, with_required
from fairlap.race.planning.scales import devices_asked, scales_asked, threads_asked
from fairlap.race.planning.shared_processes import require_honoured, require_shareable
from fairlap.race.planning.works_from_request import data_seeds_asked, modes_asked, precisions_asked, works_asked
from fairlap.race.processes.contained import require_containable
from fairlap.race.processes.sandbox import require_sandboxable
from fairlap.race.scenario_side import sides_asked, sides_not_asked
from fairlap.request.commands import CODE as E_COMMAND
from fairlap.request.commands import E_REPORT, contestants_of
from fairlap.request.fields.server_address import require_confirmed
from fairlap.request.names import FILE, FOLDER, REPORTED, RUN, ContestantName, Contestants, require_baseline
from fairlap.request.race_request import (
    BEST_BUDGET_S,
    BLOCKS_OF_ONE_CONTESTANT,
    BLOCKS_UNTIL_DECIDED,
    DEFAULT_BLOCKS_WITH_TARGET,
    MAX_BATCH_BUDGET_S,
    PROFILE_PROCESSES,
    RaceRequest,
)
from fairlap.request.units import require_within_a_day
from fairlap.request.work import CALLABLE, Work
from fairlap.scenarios.contract import require_settings
from fairlap.verdict import MAX_SLOWDOWN, Gate, RequiredChange
from fairlap.verdict.gates.required_change import E_REQUIRE

LEAST_OF_A_WORKER_BYTES = 1 << 27  # with less address space Python does not import NumPy
_MOST_SEED = 2**31
_NO_BASELINE = "{} compares with a contestant of the race; name it with --baseline"


def plan_of(
    request: RaceRequest,
    notify: Callable[[str], None] = lambda _: None,
    available_cores: tuple[int, ...] | None = None,
) -> Plan:
    """On the cores of this process unless others are given."""
    _require_once(request)
    require_settings(request.scenario_settings)
    request = _with_pinned_origins(_with_commands(request, notify))
    require_confirmed(request.contestants, remote=request.remote)
    models, skipped = selected_models(request.models, notify)
    request = msgspec.structs.replace(request, models=models)
    # What needs no model and no data is checked before they are read, which may take long.
    require_operation_options(request)
    require_modes(require_known(request.contestants), modes_asked(request))
    require_within_a_day("--seconds", request.seconds)
    _require_room_for_workers(request)
    contestants = _contestants(request)
    required, _ = changes_and_limits(request.require)
    _require_baseline(request, contestants)
    if not required:  # with those, each work has its own processes whatever was asked for
        require_shareable(request, contestants)
    require_choices(request.contestants, fed=request.data is not None)
    require_data(request.data, ())
    require_clock(request.lock_clocks, request.device)
    recompile, recompile_inputs = called_on(request)
    require_blocks(_blocks(request, until_decided=False))
    cores = tuple(sorted(os.sched_getaffinity(0))) if available_cores is None else available_cores
    usable = cores_worth(len(cores)) if available_cores is None else len(cores)
    threads, scales = max(threads_asked(request, cores, usable)), scales_asked(request, cores, usable)
    devices = devices_asked(request, scales)
    best_budget_s = _best_budget_s(request)
    if request.max_batch is None and request.max_batch_budget is not None:
        raise InvalidRequest("--max-batch-budget is for --max-batch")
    for side in sides_asked(request):
        side.require_no_others(request)
        side.require(request)
    for side in sides_not_asked(request):
        side.require_unasked(request)
    offered = works_asked(request, scales, notify)
    works = tuple(work for work, _ in offered)
    require_not_hidden(contestants, works)
    require_used(contestants, works)
    seed, *_ = data_seeds_asked(request)
    contestants = on_files(contestants, works, seed, fed=request.data is not None)
    until_decided = request.blocks is None and request.target is None and len(contestants) > 1
    blocks = _blocks(request, until_decided=until_decided)
    data = require_data(request.data, offered)
    of_scenarios: dict[str, Any] = {}
    for side in sides_asked(request):
        of_scenarios |= side.plan_fields(request, offered)
    require_free_sizes(recompile_inputs, works)
    drawn = draw_plan(
        contestants,
        works,
        blocks=blocks,
        conditions=request.conditions,
        threads=threads,
        available_cores=cores,
        seed=secrets.randbelow(_MOST_SEED) if request.seed is None else request.seed,
        data_seeds=data_seeds_asked(request),
        measuring=Measuring(seconds=float(request.seconds)),
        limits=Limits(memory_bytes=request.memory_limit_bytes),
        device=devices[0],
        devices=devices if len(devices) > 1 else (),
        lock_clocks=request.lock_clocks,
        fresh=request.fresh,
        count_allocations=request.count_allocations,
        min_memory=request.min_memory,
        data=data,
        until_decided=until_decided,
        only_winner=request.only_winner,
        gate=_gate(request, contestants, required),
        max_drop=None if request.max_drop is None else float(request.max_drop),
        profile_processes=PROFILE_PROCESSES if request.profile else 0,
        max_batch=_max_batch(request, works),
        best_budget_s=best_budget_s,
        max_batch_budget_s=MAX_BATCH_BUDGET_S if request.max_batch_budget is None else float(request.max_batch_budget),
        recompile=recompile,
        recompile_inputs=recompile_inputs,
        skipped=skipped,
        sandbox=request.sandbox,
        pass_env=request.pass_env,
        scenario_settings=request.scenario_settings,
        modules=modules_of(contestants, works),
        **of_scenarios,
        budget_s=None if request.budget is None else float(request.budget),
        target=None if request.target is None else float(request.target),
    )
    if required and request.fresh != "every":
        notify(
            f"each work has its own processes, and not those of --fresh {request.fresh}, because of {required[0].text}"
        )
    drawn = with_required(drawn, required)
    require_sandboxable(drawn)
    require_containable(drawn)
    require_honoured(drawn)
    return drawn


def _require_room_for_workers(request: RaceRequest) -> None:
    limit = request.memory_limit_bytes
    if limit is not None and limit < LEAST_OF_A_WORKER_BYTES:
        least, given = quantity_text.size(LEAST_OF_A_WORKER_BYTES), quantity_text.size(limit)
        raise InvalidRequest(
            f"--memory-limit is in bytes, and a worker needs {least} before it imports a framework (got {given}); "
            f"give more, such as {1 << 32} for 4 GiB"
        )


def _require_once(request: RaceRequest) -> None:
    """Refuse a number or name that is given twice, which would be raced once, in silence."""
    for name in ("models", "batch", "mode", "precision", "threads", "processes"):
        given = getattr(request, name)
        for each in given if isinstance(given, tuple) else ():
            if given.count(each) > 1:
                option = "MODEL" if name == "models" else f"--{name}"
                raise InvalidRequest(f"{option}: {each} is given {given.count(each)} times; give it once")


def _with_commands(request: RaceRequest, notify: Callable[[str], None]) -> RaceRequest:
    """Commands are contestants on the model that stands for no model."""
    if request.same_output and not request.commands:
        raise InvalidRequest("--same-output compares what commands print; name them with --command", code=E_COMMAND)
    if request.reported is not None and not request.commands:
        raise InvalidRequest("--reported is for programs that race with --command", code=E_REPORT)
    if not request.commands:
        return request
    output, reported = "", request.reported or ""
    of_reports = any(REPORTED in each.framework_options for each in contestants_of(request.commands, "", reported))
    if of_reports and request.contestants:
        others = ", ".join(each.text for each in request.contestants)
        raise InvalidRequest(f"{others}: only commands report times of their own; leave out --on", code=E_REPORT)
    for side in sides_asked(request) if of_reports else ():
        raise InvalidRequest(f"{side.title} is by its own times; leave out --reported", code=E_REPORT)
    if request.same_output and any(name.is_apart for name in contestants_of(request.commands)):
        raise InvalidRequest(
            "--same-output runs the first command once in this environment; leave it out where packages are installed",
            code=E_COMMAND,
        )
    if request.same_output and request.sandbox:
        raise InvalidRequest(
            "--same-output runs the first command once outside of a sandbox; leave one of the two out",
            code="E_SANDBOX",
        )
    if request.same_output:
        from fairlap.frameworks.programs.command import LONGEST_RUN_S, output_of

        name, first = next(iter((each.text, each.framework_options) for each in contestants_of(request.commands)))
        notify(f"running {name} once, for the output that all must have")
        budget_s = LONGEST_RUN_S if request.budget is None else float(request.budget)
        within_s, reports_as = min(budget_s, LONGEST_RUN_S), first.get(REPORTED, "")
        output = output_of(first[RUN], first.get(FOLDER, ""), within_s, reported=reports_as, passed=request.pass_env)
    found = contestants_of(request.commands, output, reported)
    contestants = Contestants.of((*request.contestants, *found))
    return msgspec.structs.replace(request, models=request.models or (CALLABLE,), contestants=contestants)


def _with_pinned_origins(request: RaceRequest) -> RaceRequest:
    """Find the wheels, sources and interpreters of the contestants, so that the plan has them by their content."""
    pinned = with_pinned_origins(request.contestants)
    if not pinned:
        return request
    pinned = with_libraries_found(pinned, trust=request.trust)
    return msgspec.structs.replace(request, contestants=Contestants.of(pinned))


def _contestants(request: RaceRequest) -> tuple[ContestantName, ...]:
    """In the order of the request; across precisions, each in all of them."""
    precisions = precisions_asked(request)
    if not request.across_precisions:
        return request.contestants
    if len(precisions) < 2:
        raise InvalidRequest("--across-precisions ranks several precisions; name them, such as --precision fp32,bf16")
    return tuple(each for name in request.contestants for each in name.across(precisions))


def _require_baseline(request: RaceRequest, contestants: Sequence[ContestantName]) -> None:
    """Refuse a misspelt one. Of a model in several files, contestants are known once it is read."""
    if f":{FILE}=" not in request.baseline:
        require_baseline(request.baseline, [name.text for name in contestants])
    if request.max_slowdown is not None and not (request.baseline or request.require):
        raise InvalidRequest(_NO_BASELINE.format("--max-slowdown"))


def _gate(
    request: RaceRequest, contestants: Sequence[ContestantName], required: Sequence[RequiredChange]
) -> Gate | None:
    """Bound the slowdown against the baseline; of a race with requirements on changes, against the first contestant."""
    if request.max_slowdown is None and not required:
        return None
    option = "--max-slowdown" if request.max_slowdown is not None else f"--require '{required[0].text}'"
    names = [name.text for name in contestants]
    baseline = request.baseline or (names[0] if required else "")
    if len(names) < 2 and required:
        raise InvalidRequest(f"{option} compares with another contestant; name two", code=E_REQUIRE)
    if baseline not in names:
        raise InvalidRequest(_NO_BASELINE.format(option))
    if request.only_winner:
        raise InvalidRequest(f"--only-winner compares with the fastest, {option} with the baseline; leave one out")
    return Gate(baseline, MAX_SLOWDOWN if request.max_slowdown is None else float(request.max_slowdown))


def _blocks(request: RaceRequest, *, until_decided: bool) -> int:
    if request.blocks is not None:
        return request.blocks
    if until_decided:
        return BLOCKS_UNTIL_DECIDED
    return BLOCKS_OF_ONE_CONTESTANT if request.target is None else DEFAULT_BLOCKS_WITH_TARGET


def _best_budget_s(request: RaceRequest) -> float:
    if request.best_budget is None:
        return BEST_BUDGET_S
    if not any(name.best for name in request.contestants):
        raise InvalidRequest("--best-budget is for contestants such as torch:best")
    return float(request.best_budget)


def _max_batch(request: RaceRequest, works: Sequence[Work]) -> int:
    if request.max_batch is None:
        return 0
    largest = max(work.batch for work in works)
    if request.max_batch < largest:
        raise InvalidRequest(
            f"--max-batch must be at least the batch that is raced, {largest} (got {request.max_batch})"
        )
    return request.max_batch
