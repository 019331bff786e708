"""The works that a request asks for: its models, each in every mode, precision and batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_names
from fairlap.launch.opened_source import opened
from fairlap.models.metrics.metric import CODE as E_METRIC
from fairlap.models.modes import MODES
from fairlap.models.registry import Model, find, workload_names
from fairlap.models.sources.exports.files import texts_of
from fairlap.models.sources.learning.learner import NO_GRADIENTS
from fairlap.models.sources.registry import kind_of, require_kind
from fairlap.models.spec import Spec
from fairlap.models.task_metrics import require_installed
from fairlap.race.equal_work.material_sources import require_offered, require_trainable, seeds_of_inputs
from fairlap.race.equal_work.start_weights import CODE as E_START_FROM
from fairlap.race.equal_work.start_weights import start_weights
from fairlap.race.operations import is_operation
from fairlap.race.planning.callables_source import CODE as E_REFERENCE
from fairlap.race.planning.callables_source import source_of_callables
from fairlap.race.planning.custom_libraries import first_library
from fairlap.race.planning.scales import at_scales
from fairlap.race.scenario_side import Offered, data_seeds_of, precision_asked, sides_asked
from fairlap.request.fields.data.corruption import BY_PILLOW, Corruption, corruptions_in
from fairlap.request.fields.data.corruption import CODE as E_CORRUPTION
from fairlap.request.fields.data.table_column import absolute
from fairlap.request.fields.loss import CODE as E_LOSS
from fairlap.request.fields.loss import loss_in
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.source import (
    Source,
    answer_in,
    dims_in,
    is_callable_name,
    path_parts,
    range_in,
    shapes_in,
)
from fairlap.request.fields.training import Training, optimizer_in, schedule_in
from fairlap.request.race_request import (
    MOST_BATCH,
    RaceRequest,
)
from fairlap.request.work import CALLABLE, Mode, Precision, StartWeights, Work, why_not_on
from fairlap.suggestions import not_one_of, with_hint
from fairlap.worker.process_options import CHECKOUT

E_MODEL_FILE = "E_MODEL_FILE"
_ANSWERS = "it answers token by token"
_OF_SCORES = ("groups", "corrupt")  # options about scores of answers to the user's data


def works_asked(
    request: RaceRequest, scales: Sequence[Scale], notify: Callable[[str], None]
) -> list[tuple[Work, Spec]]:
    """Every combination, each once, with its model. A combination that the model does not support is refused.

    What needs no model is checked before any is read, which may take minutes.
    """
    _require_training_settings(request)
    _require_use_of_loss(request)
    if request.reference is not None and CALLABLE not in request.models:
        raise InvalidRequest(
            "--reference is for callables: fairlap compare callable --on python:call=...", code=E_REFERENCE
        )
    for model in request.models:
        _require_model(request, model)
    found: list[tuple[Work, Spec]] = []
    unscaled: list[Work] = []
    for model in request.models:
        for work, spec in _works_of(request, model, notify):
            for precision in work.precisions:
                require_offered(spec, work.in_precision(precision))
            for side in sides_asked(request):
                work = side.with_settings(request, work, spec, notify)
            _require_another(work, unscaled)
            unscaled.append(work)
            found += [(each, spec) for each in at_scales(work, spec, scales)]
    works = [work for work, _ in found]
    _require_use_of_bindings(request, works)
    _require_known_dims(request)
    return found


def _require_another(work: Work, others: Sequence[Work]) -> None:
    same = next((each for each in others if each.id == work.id), None)
    if same is not None and same.label == work.label:
        raise InvalidRequest(f"{work.label} is given twice")
    if same is not None:
        raise InvalidRequest(f"{work.label} and {same.label} are the same work: the files are equal; leave one out")


def _require_model(request: RaceRequest, model: str) -> None:
    """Refuse a name or a file that is none."""
    sources = sources_named(request, model)
    for source in sources[:1]:  # others are the same files in other sizes
        _require_files(source)
    if not sources and model in framework_names() and model not in workload_names():
        raise InvalidRequest(f"{model} is a contestant, not a model; name all with commas: --on torch,{model}")
    if not sources:
        find(model)


def _require_files(source: Source) -> None:
    """Refuse the path of a model that is not there, with the nearest name in its folder."""
    for file in (source.path, *source.exports):
        if not file.startswith("/") or os.path.lexists(file):
            continue
        folder, name = os.path.split(file)
        others = os.listdir(folder) if os.path.isdir(folder) else []  # noqa: PTH112, PTH208  (as above)
        raise InvalidRequest(with_hint(f"there is no file {file}", name, others), code=E_MODEL_FILE)


def _require_use_of_loss(request: RaceRequest) -> None:
    if request.loss is None:
        return
    loss_in(request.loss)
    if all(MODES[mode].gives_outputs for mode in modes_asked(request)):
        raise InvalidRequest("--loss is for --mode grad and train", code=E_LOSS)
    if built_in := [model for model in request.models if model == CALLABLE or not sources_named(request, model)]:
        raise InvalidRequest(f"--loss is for a model of your own; {built_in[0]} has its own loss", code=E_LOSS)


def sources_named(request: RaceRequest, model: str) -> list[Source]:
    """Name a user's own model, once for each of the requested shapes; none for the name of a model."""
    if model == CALLABLE:
        callables = source_of_callables(request)
        return [] if callables is None else [callables]
    kind = kind_of(model)
    if kind is None:
        return []
    batch = request.batch
    batches = batch if isinstance(batch, tuple) else () if batch is None else (batch,)
    inputs = _absolute(request.inputs) if request.inputs else ""
    first, *further = kind.parts_of(model)
    generate, shared = (None, 0) if request.generate is None else answer_in(request.generate)
    whole = Source(
        model,
        _absolute(first),
        str(Path.cwd()),
        dims=dims_in(request.dims or ""),
        ranges=tuple(map(range_in, request.ranges)),
        inputs=inputs,
        trust=request.trust,
        among_others=len(request.models) > 1,
        metrics=_metrics(request),
        labels=absolute(request.labels) if request.labels and request.loss is None else "",
        groups=absolute(request.groups or ""),
        corruptions=_corruptions(request),
        generate=generate,
        shared=shared,
        checkout=_checkout(request) if is_callable_name(model) else "",
        exports=tuple(map(_absolute, further)),
        custom_ops=_custom_ops(request, model),
    )
    for side in sides_asked(request):
        whole = side.with_source(request, whole)
    shaped = [msgspec.structs.replace(whole, shapes=shapes_in(text)) for text in request.shapes] or [whole]
    return [msgspec.structs.replace(each, batch=one) for each in shaped for one in batches or (None,)]


def _custom_ops(request: RaceRequest, model: str) -> str:
    """Find the library with which the model is opened, where one of its files may need it."""
    kinds = (kind_of(part) for part in texts_of(model))
    takes = any(kind is not None and kind.takes_custom_operators for kind in kinds)
    return first_library(request.contestants) if takes else ""


def _checkout(request: RaceRequest) -> str:
    """Find where the first contestant has its code, since that is what the others are compared with."""
    found = next((name.framework_options.get(CHECKOUT, "") for name in request.contestants), "")
    return str(Path(found).absolute()) if found else ""


def modes_asked(request: RaceRequest) -> tuple[Mode, ...]:
    """List them. Raises InvalidRequest for a name, given in Python, that is none."""
    found = request.mode if isinstance(request.mode, tuple) else (request.mode,)
    for mode in found:
        if mode not in MODES:
            raise InvalidRequest(f"mode: {not_one_of(mode, MODES)}")
    return found


def precisions_asked(request: RaceRequest) -> tuple[Precision, ...]:
    """Each once; by default the usual one of what is asked. Raises InvalidRequest for what no contestant could do."""
    given = precision_asked(request) if request.precision is None else request.precision
    found = given if isinstance(given, tuple) else (given,)
    if why := next(filter(None, (why_not_on(each, request.device) for each in found)), ""):
        raise InvalidRequest(f"{why}: add --device cuda")
    if "int8" in found and (with_loss := next((mode for mode in modes_asked(request) if MODES[mode].holds_labels), "")):
        raise InvalidRequest(f"int8 is for inference; a quantized model has no gradients: leave out --mode {with_loss}")
    if request.max_drop is not None and "fp32" not in found:
        raise InvalidRequest("--max-drop compares with fp32; race it too, such as --precision fp32,bf16")
    if request.max_drop is not None and len(set(found)) < 2:
        raise InvalidRequest("--max-drop bounds what other precisions lose; name them, such as --precision fp32,bf16")
    return tuple(dict.fromkeys(found))


def data_seeds_asked(request: RaceRequest) -> tuple[int, ...]:
    """Choose the seeds that draw the data: one, unless several sets of weights help.

    A race that is fed draws its data once, and a user's model has its own weights, so one seed draws the rest. So it
    does for operations: what they take long for is their sizes, and some have weights of gigabytes. A server has one
    set of weights.
    """
    if request.data_seed is not None:
        return (request.data_seed,)
    one = request.data is not None or request.inputs is not None
    one = one or any(kind_of(model) or is_operation(model) for model in request.models)
    one = one or any(name.url for name in request.contestants)
    usual = data_seeds_of(request)
    return usual[:1] if one else usual


def metrics_named(request: RaceRequest) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys((request.metric,) if isinstance(request.metric, str) else request.metric))


def _works_of(request: RaceRequest, model: str, notify: Callable[[str], None]) -> list[tuple[Work, Spec]]:
    sources = sources_named(request, model)
    if not sources:
        named = find(model)
        usual = next((side.batch for side in sides_asked(request) if side.batch), named.spec.default_batch)
        works = _combinations(request, named.spec.name, usual)
        return _trained(request, named, [(work, named.spec.in_mode(work.mode)) for work in works], notify)
    found: list[tuple[Work, Spec]] = []
    by_modes = _by_modes(request, sources)
    for source, _ in (each for each in by_modes if each[0].loss):  # first, since a loss is soon refused
        opened(source, seeds_of_inputs(data_seeds_asked(request)[0]), notify, request.pass_env)
    for source, modes in by_modes:
        folder, bundle = opened(source, seeds_of_inputs(data_seeds_asked(request)[0]), notify, request.pass_env)
        if source.batch not in (None, bundle.batch):
            raise InvalidRequest(_why_other_batch(source, bundle.batch), code="E_SHAPES")
        whole = msgspec.structs.replace(request, mode=modes)
        works = _combinations(whole, source.name, bundle.batch, batches=(bundle.batch,))
        read = msgspec.structs.replace(source, files=bundle.files)
        for work in works:
            require_trainable(bundle, work)
        offered = [(msgspec.structs.replace(work, source=read), bundle.spec) for work in works]
        found += _trained(request, Model(bundle.spec, str(folder)), offered, notify)
    return found


def _trained(
    request: RaceRequest, model: Model, offered: Offered, notify: Callable[[str], None]
) -> list[tuple[Work, Spec]]:
    """Add what they learn, how they are trained, and what they start from."""
    for side in sides_asked(request):
        offered = side.with_data(request, model, offered, notify)
    return [
        (msgspec.structs.replace(_with_training(request, work, spec), start=_start(request, spec)), spec)
        for work, spec in offered
    ]


def _by_modes(request: RaceRequest, sources: Sequence[Source]) -> list[tuple[Source, tuple[Mode, ...]]]:
    """Name each source with the modes it is raced in: with a loss where it is differentiated, and its labels there."""
    modes = modes_asked(request)
    differentiated = tuple(mode for mode in modes if not MODES[mode].gives_outputs)
    if not differentiated:
        return [(source, modes) for source in sources]
    found: list[tuple[Source, tuple[Mode, ...]]] = []
    for source in sources:
        kind = require_kind(source)
        if why := _ANSWERS if source.generate else kind.no_gradients:
            raise InvalidRequest(f"{source.shown} is raced in inference only: {why}", code=NO_GRADIENTS)
        if request.loss is None:
            raise InvalidRequest(
                f"--mode {differentiated[0]} of {source.shown} needs its loss: add --loss cross_entropy, mse or "
                "module:function",
                code=E_LOSS,
            )
        if answered := tuple(mode for mode in modes if MODES[mode].gives_outputs):
            found.append((source, answered))
        labels = str(Path(request.labels).absolute()) if request.labels else ""
        found.append((msgspec.structs.replace(source, loss=loss_in(request.loss), labels=labels), differentiated))
    return found


def _why_other_batch(source: Source, bound: int) -> str:
    asked = f"{source.name}: --batch is {source.batch}"
    if source.inputs and not source.shapes and not source.dims:
        return (
            f"{asked}, but --inputs has {quantity_text.count(bound, 'item')}; give inputs of that batch, or no --batch"
        )
    return f"{asked}, but its inputs are bound to {bound}; give --batch or the sizes, not both"


def _metrics(request: RaceRequest) -> tuple[str, ...]:
    """Name those of its answers, rather than of what it learns."""
    if any(side.scores for side in sides_asked(request)):
        for name in _OF_SCORES:
            if getattr(request, name):
                raise InvalidRequest(f"--{name} is for answers to --inputs, not for what is learnt", code=E_METRIC)
        return ()
    names = metrics_named(request)
    for name in names:
        require_installed(name)
    if names and request.loss is not None:
        raise InvalidRequest("--metric scores inference; leave out --loss, or race it separately", code=E_METRIC)
    if (request.loss is None and bool(names) != bool(request.labels)) or (names and not request.inputs):
        raise InvalidRequest("a metric takes --metric, --labels and --inputs together", code=E_METRIC)
    if not names and (given := [name for name in _OF_SCORES if getattr(request, name)]):
        raise InvalidRequest(f"--{given[0]} is for scores; give --metric, --labels and --inputs too", code=E_METRIC)
    return names


def _corruptions(request: RaceRequest) -> tuple[Corruption, ...]:
    found = corruptions_in((request.corrupt,) if isinstance(request.corrupt, str) else request.corrupt)
    if find_spec("PIL") is None and (by_pillow := [each.name for each in found if each.name in BY_PILLOW]):
        raise InvalidRequest(f"{by_pillow[0]} needs Pillow: pip install 'fairlap[images]'", code=E_CORRUPTION)
    return found


def _absolute(text: str) -> str:
    """Make a path absolute, of ``file.py:function`` the file's; a module is unchanged."""
    prefix, path, settings = path_parts(text)
    if prefix:
        return f"{prefix}{Path(path).absolute()}{settings}"
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
        _, bundle = opened(source, seeds_of_inputs(data_seeds_asked(request)[0]))
        named.update(bundle.dims)
    if unknown := [name for name, _ in dims_in(request.dims) if name not in named]:
        raise InvalidRequest(
            f"none of the models has a dimension named {', '.join(unknown)}", code="E_MODEL_DIMENSIONS"
        )


def _require_use_of_bindings(request: RaceRequest, works: Sequence[Work]) -> None:
    if any(work.source for work in works):
        return
    for name in ("labels", *_OF_SCORES):
        if getattr(request, name):
            raise InvalidRequest(f"--{name} is for a model of your own with your data", code=E_METRIC)
    if request.metric and not any(side.scores for side in sides_asked(request)):
        raise InvalidRequest(
            "--metric scores a model of your own on your data, or what a built-in one learns with --to-score",
            code=E_METRIC,
        )
    options: dict[str, object] = {"shapes": request.shapes, "dims": request.dims, "inputs": request.inputs}
    options |= {"range": request.ranges, "generate": request.generate, "trust": request.trust}
    if given := [name for name, value in options.items() if value]:
        raise InvalidRequest(
            f"--{given[0]} is for a model of your own; built-in models have fixed inputs", code="E_SHAPES"
        )


def _require_training_settings(request: RaceRequest) -> None:
    trained = any(MODES[mode].trains for mode in modes_asked(request))
    if (request.optimizer or request.schedule) and not trained:
        raise InvalidRequest("an optimizer and a schedule are for --mode train")
    if request.start_from is not None and not all(MODES[mode].trains for mode in modes_asked(request)):
        raise InvalidRequest("--start-from is for --mode train alone", code=E_START_FROM)
    if request.optimizer is not None:
        optimizer_in(request.optimizer)
    if request.schedule is not None:
        schedule_in(request.schedule)


def _with_training(request: RaceRequest, work: Work, spec: Spec) -> Work:
    if not MODES[work.mode].trains:
        return work
    optimizer = spec.training.optimizer if request.optimizer is None else optimizer_in(request.optimizer)
    schedule = spec.training.schedule if request.schedule is None else schedule_in(request.schedule)
    return msgspec.structs.replace(work, training=Training(optimizer, schedule))


def _start(request: RaceRequest, spec: Spec) -> StartWeights | None:
    return None if request.start_from is None else start_weights(request.start_from, spec)


def _combinations(request: RaceRequest, model: str, default_batch: int, batches: tuple[int, ...] = ()) -> list[Work]:
    modes, precisions = modes_asked(request), precisions_asked(request)
    batch = default_batch if request.batch is None else request.batch
    batches = batches or (batch if isinstance(batch, tuple) else (batch,))
    for each in batches:
        whole_number("batch", each, least=1, most=MOST_BATCH)
    if request.across_precisions:
        return [Work(model, batch, mode, precisions[0], together=precisions) for mode in modes for batch in batches]
    return [Work(model, batch, mode, precision) for mode in modes for precision in precisions for batch in batches]
