"""A user's own models as a request names them: their files, and the data and options that go with them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_names
from fairlap.models.metrics.metric import CODE as E_METRIC
from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.models.sources.exports.files import texts_of
from fairlap.models.sources.registry import kind_of
from fairlap.models.task_metrics import require_installed
from fairlap.race.planning.callables_source import source_of_callables
from fairlap.race.planning.custom_libraries import first_library
from fairlap.race.scenario_side import sides_asked
from fairlap.request.fields.data.corruption import BY_PILLOW, Corruption, corruptions_in
from fairlap.request.fields.data.corruption import CODE as E_CORRUPTION
from fairlap.request.fields.data.table_column import absolute
from fairlap.request.fields.source import (
    Source,
    answer_in,
    dims_in,
    is_callable_name,
    path_parts,
    range_in,
    shapes_in,
)
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import CALLABLE, Work
from fairlap.suggestions import with_hint
from fairlap.worker.process_options import CHECKOUT

E_MODEL_FILE = "E_MODEL_FILE"
_OF_SCORES = ("groups", "corrupt")  # options about scores of answers to the user's data


def require_model(request: RaceRequest, model: str) -> None:
    """Refuse a name or a file that is none."""
    sources = sources_named(request, model)
    for source in sources[:1]:  # others are the same files in other sizes
        _require_files(source)
    if not sources and model in framework_names() and model not in workload_names():
        so = f"name all with commas: --on torch,{model}" if request.contestants else f"name one: mlp --on {model}"
        raise InvalidRequest(f"{model} is a contestant, not a model; {so}")
    if not sources:
        find(model)


def _require_files(source: Source) -> None:
    """Refuse the path of a model that is not there, with the nearest name in its folder."""
    for file in (source.path, *source.exports):
        if not file.startswith("/") or os.path.lexists(file):
            continue
        folder, name = os.path.split(file)
        others = os.listdir(folder) if os.path.isdir(folder) else []  # noqa: PTH112, PTH208  (as below)
        raise InvalidRequest(with_hint(f"there is no file {file}", name, others), code=E_MODEL_FILE)


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


def metrics_named(request: RaceRequest) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys((request.metric,) if isinstance(request.metric, str) else request.metric))


def require_use_of_bindings(request: RaceRequest, works: Sequence[Work]) -> None:
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
