"""The plan that is drawn from a request."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.launch.opened_source import opened
from fairlap.launch.runners import require_known, require_modes
from fairlap.machine.control_group import cores_worth
from fairlap.models.registry import Model, find, workload_names
from fairlap.models.sources.registry import kind_of
from fairlap.models.spec import Spec
from fairlap.models.task_metrics import require_installed
from fairlap.race.around_blocks.recompile_request import called_on, require_free_sizes
from fairlap.race.equal_work.fed_check import require_choices, require_data
from fairlap.race.equal_work.held_out_scores import require_scorable
from fairlap.race.equal_work.learning import require_learnable
from fairlap.race.equal_work.learning_data import E_TO_SCORE, data_to_learn, labelled
from fairlap.race.equal_work.materials import require_offered, seeds_of_inputs
from fairlap.race.equal_work.start_weights import CODE as E_START_FROM
from fairlap.race.equal_work.start_weights import start_weights
from fairlap.race.load.load_plan import BATCH_OF_A_REQUEST, with_load
from fairlap.race.operations import is_operation, require_operation_options, selected_models
from fairlap.race.plan import Limits, Measuring, Plan, draw_plan, require_blocks, usual_data_seeds
from fairlap.race.processes.sandbox import require_sandboxable
from fairlap.race.scales import at_scales, scales_asked, threads_asked
from fairlap.request.commands import CODE as E_COMMAND
from fairlap.request.commands import E_REPORT, contestants_of
from fairlap.request.names import FOLDER, REPORTED, RUN, ContestantName, Contestants
from fairlap.request.race_request import (
    BEST_BUDGET_S,
    BLOCKS_OF_ONE_CONTESTANT,
    BLOCKS_UNTIL_DECIDED,
    DEFAULT_BLOCKS_WITH_TARGET,
    MAX_BATCH_BUDGET_S,
    MOST_BATCH,
    MOST_EPOCHS_BY_DEFAULT,
    PROFILE_PROCESSES,
    RaceRequest,
)
from fairlap.request.scale import Scale
from fairlap.request.server_address import require_confirmed
from fairlap.request.source import PREFIX_OF_TRANSFORMERS, Source, dims_in, range_in, shapes_in
from fairlap.request.training import Training, optimizer_in, schedule_in
from fairlap.request.units import require_within_a_day
from fairlap.request.work import Mode, Precision, StartWeights, Work
from fairlap.request.work_title import CALLABLE
from fairlap.scenarios.contract import require_settings
from fairlap.verdict import Gate

_MOST_SEED = 2**31


def plan_of(
    request: RaceRequest,
    notify: Callable[[str], None] = lambda _: None,
    available_cores: tuple[int, ...] | None = None,
) -> Plan:
    """On the cores of this process unless others are given."""
    _require_once(request)
    require_settings(request.scenario_settings)
    request = _with_commands(request, notify)
    require_confirmed(request.contestants, remote=request.remote)
    models, skipped = selected_models(request.models, notify)
    request = msgspec.structs.replace(request, models=models)
    # What needs no model and no data is checked before they are read, which may take long.
    require_operation_options(request)
    require_modes(require_known(request.contestants), _modes(request))
    require_within_a_day("--seconds", request.seconds)
    contestants = _contestants(request)
    require_choices(request.contestants, fed=request.data is not None)
    device = str(request.device)
    recompile, recompile_inputs = called_on(request)
    until_decided = request.blocks is None and request.target is None and len(contestants) > 1
    blocks = _blocks(request, until_decided=until_decided)
    require_blocks(blocks)
    cores = tuple(sorted(os.sched_getaffinity(0))) if available_cores is None else available_cores
    usable = cores_worth(len(cores)) if available_cores is None else len(cores)
    threads, scales = max(threads_asked(request, cores, usable)), scales_asked(request, cores, usable)
    best_budget_s, most_epochs = _best_budget_s(request), _most_epochs(request)
    offered = _works(request, scales, notify)
    works = tuple(work for work, _ in offered)
    data = require_data(request.data, offered)
    if request.to_score is not None:
        for work, spec in offered:
            require_learnable(work, spec)
    require_free_sizes(recompile_inputs, works)
    drawn = draw_plan(
        contestants,
        works,
        blocks=blocks,
        conditions=request.conditions,
        threads=threads,
        available_cores=cores,
        seed=secrets.randbelow(_MOST_SEED) if request.seed is None else request.seed,
        data_seeds=_data_seeds(request),
        measuring=Measuring(seconds=float(request.seconds)),
        limits=Limits(memory_bytes=request.memory_limit_bytes),
        device=device,
        min_memory=request.min_memory,
        data=data,
        until_decided=until_decided,
        only_winner=request.only_winner,
        gate=_gate(request, contestants),
        max_drop=None if request.max_drop is None else float(request.max_drop),
        to_score=None if request.to_score is None else float(request.to_score),
        most_epochs=most_epochs,
        metrics=_metrics_of_learning(request, offered),
        profile_processes=PROFILE_PROCESSES if request.profile else 0,
        max_batch=_max_batch(request, works),
        best_budget_s=best_budget_s,
        max_batch_budget_s=MAX_BATCH_BUDGET_S if request.max_batch_budget is None else float(request.max_batch_budget),
        count_evaluation=request.count_evaluation,
        recompile=recompile,
        recompile_inputs=recompile_inputs,
    )
    drawn = msgspec.structs.replace(
        drawn,
        skipped=skipped,
        sandbox=request.sandbox,
        pass_env=request.pass_env,
        scenario_settings=request.scenario_settings,
    )
    require_sandboxable(drawn)
    return drawn


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
    if of_reports and request.load is not None:
        raise InvalidRequest("a race of load is by its own times; leave out --reported", code=E_REPORT)
    if request.same_output and request.sandbox:
        raise InvalidRequest(
            "--same-output runs the first command once outside of a sandbox; leave one of the two out",
            code="E_SANDBOX",
        )
    if request.same_output:
        from fairlap.frameworks.command import LONGEST_RUN_S, output_of

        name, first = next(iter((each.text, each.framework_options) for each in contestants_of(request.commands)))
        notify(f"running {name} once, for the output that all must have")
        budget_s = LONGEST_RUN_S if request.budget is None else float(request.budget)
        within_s, reports_as = min(budget_s, LONGEST_RUN_S), first.get(REPORTED, "")
        output = output_of(first[RUN], first.get(FOLDER, ""), within_s, reported=reports_as, passed=request.pass_env)
    found = contestants_of(request.commands, output, reported)
    contestants = Contestants.of((*request.contestants, *found))
    return msgspec.structs.replace(request, models=request.models or (CALLABLE,), contestants=contestants)


def _contestants(request: RaceRequest) -> tuple[ContestantName, ...]:
    """In the order of the request; across precisions, each in all of them."""
    precisions = _precisions(request)
    if not request.across_precisions:
        return request.contestants
    if len(precisions) < 2:
        raise InvalidRequest("--across-precisions ranks several precisions; name them, such as --precision fp32,bf16")
    return tuple(each for name in request.contestants for each in name.across(precisions))


def _gate(request: RaceRequest, contestants: Sequence[ContestantName]) -> Gate | None:
    if request.max_slowdown is None:
        return None
    if request.baseline not in [name.text for name in contestants]:
        raise InvalidRequest("--max-slowdown compares with a contestant of the race; name it with --baseline")
    if request.only_winner:
        raise InvalidRequest("--only-winner compares with the fastest, --max-slowdown with the baseline; leave one out")
    return Gate(request.baseline, float(request.max_slowdown))


def _modes(request: RaceRequest) -> tuple[Mode, ...]:
    return request.mode if isinstance(request.mode, tuple) else (request.mode,)


def _precisions(request: RaceRequest) -> tuple[Precision, ...]:
    """Each once. Raises InvalidRequest for what no contestant could do."""
    found = request.precision if isinstance(request.precision, tuple) else (request.precision,)
    if "tf32" in found and request.device == "cpu":
        raise InvalidRequest("tf32 is a way of multiplying on NVIDIA GPUs; a CPU has none: add --device cuda")
    if "int8" in found and "grad" in _modes(request):
        raise InvalidRequest("int8 is for inference; a quantized model has no gradients: leave out --mode grad")
    if request.max_drop is not None and "fp32" not in found:
        raise InvalidRequest("--max-drop compares with fp32; race it too, such as --precision fp32,bf16")
    if request.max_drop is not None and len(set(found)) < 2:
        raise InvalidRequest("--max-drop bounds what other precisions lose; name them, such as --precision fp32,bf16")
    return tuple(dict.fromkeys(found))


def _most_epochs(request: RaceRequest) -> int:
    if request.to_score is None:
        given = {"epochs": request.epochs, "train-on": request.train_on, "fraction": request.fraction}
        given |= {"count-evaluation": request.count_evaluation or None}
        for name, value in given.items():
            if value is not None:
                raise InvalidRequest(f"--{name} is for --to-score", code=E_TO_SCORE)
        return 0
    if request.data is not None:
        raise InvalidRequest("--data feeds single steps; the data to learn are those of --train-on", code=E_TO_SCORE)
    if request.epochs is None:
        return MOST_EPOCHS_BY_DEFAULT
    return whole_number("epochs", request.epochs, least=1, most=10**6)


def _metrics_of_learning(request: RaceRequest, offered: Sequence[tuple[Work, Spec]]) -> tuple[str, ...]:
    if request.to_score is None:
        return ()
    names = _named_metrics(request)
    for work, spec in offered if names else ():
        require_scorable(names, spec, labelled(work, spec))
    return names


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
        if request.max_batch_budget is not None:
            raise InvalidRequest("--max-batch-budget is for --max-batch")
        return 0
    largest = max(work.batch for work in works)
    if request.max_batch < largest:
        raise InvalidRequest(
            f"--max-batch must be at least the batch that is raced, {largest} (got {request.max_batch})"
        )
    return request.max_batch


def _data_seeds(request: RaceRequest) -> tuple[int, ...]:
    """Choose the seeds that draw the data: one, unless several sets of weights help.

    A race that is fed draws its data once, and a user's model has its own weights, so one seed draws the rest. So it
    does for operations: what they take long for is their sizes, and some have weights of gigabytes. A server has one
    set of weights.
    """
    if request.data_seed is not None:
        return (request.data_seed,)
    one = request.data is not None or any(kind_of(model) or is_operation(model) for model in request.models)
    one = one or any(name.url for name in request.contestants)
    usual = usual_data_seeds(request.to_score)
    return usual[:1] if one else usual


def _works(request: RaceRequest, scales: Sequence[Scale], notify: Callable[[str], None]) -> list[tuple[Work, Spec]]:
    """Every combination, each once, with its model. A combination that the model does not support is refused."""
    _require_training_settings(request)
    found: list[tuple[Work, Spec]] = []
    unscaled: list[Work] = []
    for model in request.models:
        for work, spec in _works_of(request, model, notify):
            for precision in work.precisions:
                require_offered(spec, work.in_precision(precision))
            work = with_load(request, work, spec)
            if work in unscaled:
                raise InvalidRequest(f"{work.label} is given twice")
            unscaled.append(work)
            found += [(each, spec) for each in at_scales(work, spec, scales)]
    works = [work for work, _ in found]
    _require_use_of_bindings(request, works)
    _require_known_dims(request)
    if (request.optimizer or request.schedule) and not any(work.training for work in works):
        raise InvalidRequest("an optimizer and a schedule are for --mode train")
    return found


def _works_of(request: RaceRequest, model: str, notify: Callable[[str], None]) -> list[tuple[Work, Spec]]:
    sources = sources_named(request, model)
    if sources and request.start_from is not None:
        raise InvalidRequest("--start-from is for built-in models; your own has its weights", code=E_START_FROM)
    if not sources:
        named = find(model)
        usual = named.spec.default_batch if request.load is None else BATCH_OF_A_REQUEST
        works = _combinations(request, named.spec.name, usual)
        if request.to_score is not None:
            found = _learning(request, named, works, notify)
        else:
            found = [(_with_training(request, work, named.spec), named.spec) for work in works]
        return [(msgspec.structs.replace(work, start=_start(request, spec)), spec) for work, spec in found]
    found = []
    for source in sources:
        _, bundle = opened(source, seeds_of_inputs(_data_seeds(request)[0]), notify, request.pass_env)
        if source.batch not in (None, bundle.batch):
            raise InvalidRequest(_why_other_batch(source, bundle.batch), code="E_SHAPES")
        works = _combinations(request, source.name, bundle.batch, batches=(bundle.batch,))
        read = msgspec.structs.replace(source, files=bundle.files)
        found += [(msgspec.structs.replace(work, source=read), bundle.spec) for work in works]
    return found


def _why_other_batch(source: Source, bound: int) -> str:
    asked = f"{source.name}: --batch is {source.batch}"
    if source.inputs and not source.shapes and not source.dims:
        return (
            f"{asked}, but --inputs has {quantity_text.count(bound, 'item')}; give inputs of that batch, or no --batch"
        )
    return f"{asked}, but its inputs are bound to {bound}; give --batch or the sizes, not both"


def sources_named(request: RaceRequest, model: str) -> list[Source]:
    """Name a user's own model, once for each of the requested shapes; none for the name of a model."""
    if model in workload_names() or kind_of(model) is None:
        return []
    batch = request.batch
    batches = batch if isinstance(batch, tuple) else () if batch is None else (batch,)
    inputs = _absolute(request.inputs) if request.inputs else ""
    whole = Source(
        model,
        _absolute(model),
        str(Path.cwd()),
        dims=dims_in(request.dims or ""),
        ranges=tuple(map(range_in, request.ranges)),
        inputs=inputs,
        trust=request.trust,
        among_others=len(request.models) > 1,
        metrics=_metrics(request),
        labels=str(Path(request.labels).absolute()) if request.labels else "",
    )
    shaped = [msgspec.structs.replace(whole, shapes=shapes_in(text)) for text in request.shapes] or [whole]
    return [msgspec.structs.replace(each, batch=one) for each in shaped for one in batches or (None,)]


def _metrics(request: RaceRequest) -> tuple[str, ...]:
    names = _named_metrics(request)
    for name in names:
        require_installed(name)
    if bool(names) != bool(request.labels) or (names and not request.inputs):
        raise InvalidRequest("a metric takes --metric, --labels and --inputs together", code="E_METRIC")
    return names


def _named_metrics(request: RaceRequest) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys((request.metric,) if isinstance(request.metric, str) else request.metric))


def _absolute(text: str) -> str:
    """Make a path absolute, of ``file.py:function`` the file's; a module is unchanged."""
    if text.startswith(PREFIX_OF_TRANSFORMERS):
        return PREFIX_OF_TRANSFORMERS + str(Path(text.removeprefix(PREFIX_OF_TRANSFORMERS)).absolute())
    file, colon, function = text.rpartition(":")
    if colon and file.endswith(".py"):
        return f"{Path(file).absolute()}:{function}"
    is_module = colon and not os.path.exists(text)  # noqa: PTH110  (a Path raises where the text is too long)
    return text if is_module else str(Path(text).absolute())


def _require_known_dims(request: RaceRequest) -> None:
    """Refuse dimensions that none of several models has; a single model refuses those that it lacks itself."""
    if len(request.models) == 1 or not request.dims:
        return
    named: set[str] = set()
    for source in (source for model in request.models for source in sources_named(request, model)):
        _, bundle = opened(source, seeds_of_inputs(_data_seeds(request)[0]))
        named.update(bundle.dims)
    if unknown := [name for name, _ in dims_in(request.dims) if name not in named]:
        raise InvalidRequest(
            f"none of the models has a dimension named {', '.join(unknown)}", code="E_MODEL_DIMENSIONS"
        )


def _require_use_of_bindings(request: RaceRequest, works: Sequence[Work]) -> None:
    if any(work.source for work in works):
        return
    if request.labels:
        raise InvalidRequest("--labels is for a model of your own with your data", code="E_METRIC")
    if request.metric and request.to_score is None:
        raise InvalidRequest(
            "--metric scores a model of your own on your data, or what a built-in one learns with --to-score",
            code="E_METRIC",
        )
    options = {"shapes": request.shapes, "dims": request.dims, "inputs": request.inputs, "range": request.ranges}
    if given := [name for name, value in {**options, "trust": request.trust}.items() if value]:
        raise InvalidRequest(
            f"--{given[0]} is for a model of your own; built-in models have fixed inputs", code="E_SHAPES"
        )


def _learning(
    request: RaceRequest, model: Model, works: Sequence[Work], notify: Callable[[str], None]
) -> list[tuple[Work, Spec]]:
    """Works that are trained to a score, with their data and the model in the sizes of the data."""
    for work in works:
        require_offered(model.spec, work)
        if work.mode != "train":
            raise InvalidRequest("--to-score is for --mode train", code=E_TO_SCORE)
    if request.train_on is not None and not request.train_on.strip():
        raise InvalidRequest("--train-on is empty; name a data set or a file", code="E_DATA")
    fraction = 1.0 if request.fraction is None else float(request.fraction)
    data, spec = data_to_learn(model, request.train_on or "", fraction, notify)
    return [(msgspec.structs.replace(_with_training(request, work, spec), train_on=data), spec) for work in works]


def _require_training_settings(request: RaceRequest) -> None:
    """Before data and models are read, which may take long."""
    if request.optimizer is not None:
        optimizer_in(request.optimizer)
    if request.schedule is not None:
        schedule_in(request.schedule)


def _with_training(request: RaceRequest, work: Work, spec: Spec) -> Work:
    if work.mode != "train":
        return work
    optimizer = spec.training.optimizer if request.optimizer is None else optimizer_in(request.optimizer)
    schedule = spec.training.schedule if request.schedule is None else schedule_in(request.schedule)
    return msgspec.structs.replace(work, training=Training(optimizer, schedule))


def _start(request: RaceRequest, spec: Spec) -> StartWeights | None:
    if request.start_from is None:
        return None
    if set(_modes(request)) != {"train"}:
        raise InvalidRequest("--start-from is for --mode train alone", code=E_START_FROM)
    return start_weights(request.start_from, spec)


def _combinations(request: RaceRequest, model: str, default_batch: int, batches: tuple[int, ...] = ()) -> list[Work]:
    modes, precisions = _modes(request), _precisions(request)
    batch = default_batch if request.batch is None else request.batch
    batches = batches or (batch if isinstance(batch, tuple) else (batch,))
    for each in batches:
        whole_number("batch", each, least=1, most=MOST_BATCH)
    if request.across_precisions:
        return [Work(model, batch, mode, precisions[0], together=precisions) for mode in modes for batch in batches]
    return [Work(model, batch, mode, precision) for mode in modes for precision in precisions for batch in batches]
