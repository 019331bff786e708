"""The works that a request asks for: its models, each in every mode, precision and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.launch.opened_source import opened
from fairlap.models.modes import MODES
from fairlap.models.registry import Model, find
from fairlap.models.sources.contract import Bundle
from fairlap.models.sources.learning.loss import NO_GRADIENTS
from fairlap.models.sources.registry import kind_of, require_kind
from fairlap.models.spec import Spec
from fairlap.race.equal_work.material_sources import require_offered, require_trainable, seeds_of_inputs
from fairlap.race.equal_work.start_weights import CODE as E_START_FROM
from fairlap.race.equal_work.start_weights import start_weights
from fairlap.race.operations import is_operation
from fairlap.race.planning.callables_source import CODE as E_REFERENCE
from fairlap.race.planning.scales import at_scales
from fairlap.race.planning.sources_from_request import require_model, require_use_of_bindings, sources_named
from fairlap.race.scenario_side import Offered, data_seeds_of, precision_asked, sides_asked
from fairlap.request.fields.loss import CODE as E_LOSS
from fairlap.request.fields.loss import loss_in
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.source import (
    Source,
    dims_in,
)
from fairlap.request.fields.training import Training, optimizer_in, schedule_in
from fairlap.request.race_request import (
    MOST_BATCH,
    RaceRequest,
)
from fairlap.request.work import CALIBRATED, CALLABLE, Mode, Precision, StartWeights, Work, why_not_on
from fairlap.suggestions import not_one_of

_ANSWERS = "it answers token by token"


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
        require_model(request, model)
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
    require_use_of_bindings(request, works)
    _require_known_dims(request)
    return found


def _require_another(work: Work, others: Sequence[Work]) -> None:
    same = next((each for each in others if each.id == work.id), None)
    if same is not None and same.label == work.label:
        raise InvalidRequest(f"{work.label} is given twice")
    if same is not None:
        raise InvalidRequest(f"{work.label} and {same.label} are the same work: the files are equal; leave one out")


def _require_use_of_loss(request: RaceRequest) -> None:
    if request.loss is None:
        return
    loss_in(request.loss)
    if all(MODES[mode].gives_outputs for mode in modes_asked(request)):
        raise InvalidRequest("--loss is for --mode grad and train", code=E_LOSS)
    if built_in := [model for model in request.models if model == CALLABLE or not sources_named(request, model)]:
        raise InvalidRequest(f"--loss is for a model of your own; {built_in[0]} has its own loss", code=E_LOSS)


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
    quantized = next((each for each in found if each in CALIBRATED), "")
    if quantized and (with_loss := next((mode for mode in modes_asked(request) if MODES[mode].holds_labels), "")):
        raise InvalidRequest(
            f"{quantized} is for inference; a quantized model has no gradients: leave out --mode {with_loss}"
        )
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
        _opened(request, source, notify)
    for source, modes in by_modes:
        folder, bundle = _opened(request, source, notify)
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


def _opened(
    request: RaceRequest, source: Source, notify: Callable[[str], None] = lambda _: None
) -> tuple[Path, Bundle]:
    seeds = seeds_of_inputs(data_seeds_asked(request)[0])
    fp8 = "fp8" in precisions_asked(request)
    return opened(source, seeds, notify, request.pass_env, fp8=fp8, budget_s=request.budget)


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


def _require_known_dims(request: RaceRequest) -> None:
    """Refuse dimensions that none of several models has; a single model refuses those that it lacks itself."""
    if len(request.models) == 1 or not request.dims:
        return
    named: set[str] = set()
    for source in (source for model in request.models for source in sources_named(request, model)):
        _, bundle = _opened(request, source)
        named.update(bundle.dims)
    if unknown := [name for name, _ in dims_in(request.dims) if name not in named]:
        raise InvalidRequest(
            f"none of the models has a dimension named {', '.join(unknown)}", code="E_MODEL_DIMENSIONS"
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
