"""Where the materials of a work come from: those of a built-in model are drawn, a user's model is opened.

They are stored in the user's cache under a name made of all that determines them, and are written once, or again when a
file is damaged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Framework
from fairlap.frameworks.registry import framework_named
from fairlap.launch.opened_source import opened
from fairlap.launch.runners import NoRoute
from fairlap.machine.available_memory import available_memory_bytes
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.models.array_files import safetensors
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.modes import MODES
from fairlap.models.registry import find, spec_with
from fairlap.models.sources.bundle import bundle_in, route_to
from fairlap.models.sources.contract import Bundle
from fairlap.models.sources.exports.files import folder_of
from fairlap.models.sources.inputs import CALIBRATION, CALIBRATION_FROM, calibration_count
from fairlap.models.sources.proof import unnoticed_notice
from fairlap.models.spec import BATCH_LABELS, LABELS, Spec
from fairlap.race.equal_work.materials import UNSEEN, Materials
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.equal_work.start_weights import weights_of
from fairlap.request.fields.source import Source
from fairlap.request.names import ContestantName
from fairlap.request.work import CALIBRATED, Mode, Precision, Work

_CHANGED = 1000  # added to the seed: inputs that a contestant has not seen while it was made
_UNSEEN_FROM = 2000


def require_offered(spec: Spec, work: Work) -> None:
    if work.mode not in spec.modes:
        has = ", ".join(spec.modes)
        raise InvalidRequest(f"{work.model} has no mode {work.mode}; it has {has}: give --mode {spec.modes[0]}")
    if why := mode_side(work.mode).why_not_in(work.precision):
        raise InvalidRequest(why)
    if work.precision not in spec.precisions:
        raise InvalidRequest(f"{work.model} has no precision {work.precision}; it has {', '.join(spec.precisions)}")
    if MODES[work.mode].trains and work.precision not in spec.trained_in:
        raise InvalidRequest(f"{work.model} is trained in {', '.join(spec.trained_in)}, not in {work.precision}")


def require_trainable(bundle: Bundle, work: Work) -> None:
    if MODES[work.mode].trains and bundle.no_training:
        raise InvalidRequest(
            f"{work.model} cannot be trained: {bundle.no_training}; --mode grad takes the gradients of inference",
            code="E_NOT_TRAINED",
        )


def materials_for(
    work: Work,
    data_seed: int,
    notify: Callable[[str], None] = lambda _: None,
    passed: tuple[str, ...] = (),
    *,
    budget_s: float | None = None,
) -> Materials:
    """Draw weights and inputs, or find those drawn before.

    A user's model has its own weights, and is opened with the secret variables that are ``passed``, for as long as the
    budget allows.
    """
    if work.source is not None:
        return _of_source(work, work.source, data_seed, notify, passed, budget_s)
    materials = _built_in(work, data_seed)
    spec = materials.spec
    make_cache_folder(materials.folder)
    if not safetensors.is_whole(materials.weights_file):
        if spec.computes:
            notify(f"{work.model}, batch {work.batch}: drawing weights and inputs of seed {data_seed} (kept)")
        drawn = draw_weights(spec, data_seed) if work.start is None else weights_of(work.start, spec)
        safetensors.write(materials.weights_file, drawn)
    for which, seed in seeds_of_inputs(data_seed).items():
        if not safetensors.is_whole(materials.inputs_file(which)):
            arrays: dict[str, npt.NDArray[Any]] = dict(draw_inputs(spec, work.batch, seed))
            labels = draw_labels(spec, work.batch, data_seed)  # of the loss of mode "grad", which stays the same
            of_batch = draw_labels(spec, work.batch, seed)
            if labels is not None and of_batch is not None:
                arrays |= {LABELS: labels, BATCH_LABELS: of_batch}
            safetensors.write(materials.inputs_file(which), arrays)
    if work.precision in CALIBRATED:
        for number in range(calibration_count(work.batch)):
            file = materials.inputs_file(f"{CALIBRATION}{number}")
            if not safetensors.is_whole(file):
                safetensors.write(file, draw_inputs(spec, work.batch, data_seed + CALIBRATION_FROM + number))
    return materials


def _built_in(work: Work, data_seed: int) -> Materials:
    """Name the files of a built-in model. At other sizes than its usual ones it has the weights of those."""
    found = find(work.model, work.sizes)
    spec = spec_with(found.package, work.free_sizes) if work.free_sizes else found.spec
    require_offered(spec, work)
    spec = spec.in_mode(work.mode)
    start = "" if work.start is None else f" {work.start.sha256}"
    key = hashlib.sha256(f"2 {spec!r} {work.batch} {data_seed}{start}".encode()).hexdigest()[:16]
    held = None
    if work.free_sizes:
        held = materials_for(msgspec.structs.replace(work, sizes_of_calls=None), data_seed).weights_file
    folder = work_cache() / "work" / f"{spec.name}-b{work.batch}-{key}"
    return Materials(work, spec, found.package, folder, start_file=held)


def seeds_of_inputs(data_seed: int) -> dict[str, int]:
    """Name the sets of inputs of a work, and the seed that draws each."""
    unseen = {which: data_seed + _UNSEEN_FROM + number for number, which in enumerate(UNSEEN)}
    return {"inputs": data_seed, "changed": data_seed + _CHANGED, **unseen}


def _of_source(
    work: Work,
    source: Source,
    data_seed: int,
    notify: Callable[[str], None],
    passed: tuple[str, ...],
    budget_s: float | None,
) -> Materials:
    seeds, fp8 = seeds_of_inputs(data_seed), work.precision == "fp8"
    folder, bundle = opened(source, seeds, notify, passed, fp8=fp8, budget_s=budget_s)
    require_offered(bundle.spec, work)
    require_trainable(bundle, work)
    allowed = bundle.tolerances.get(work.precision, {})
    start_file = None
    if work.start is not None:
        start_file = folder / f"start-{work.start.sha256[:16]}.safetensors"
        if not safetensors.is_whole(start_file):
            safetensors.write(start_file, weights_of(work.start, bundle.spec))
    notices = _notices(bundle, work.precision)
    return Materials(work, bundle.spec, str(folder), folder, notices, allowed, bundle.own_types, start_file)


def _notices(bundle: Bundle, precision: Precision) -> tuple[Notice, ...]:
    """Adapt the bundle's notices, which are those of float32, to the precision."""
    silent = bundle.unnoticed.get(precision, ())
    if precision == "fp32":
        return bundle.notices
    kept = [notice for notice in bundle.notices if notice.code not in ("W_INPUT_UNNOTICED", "W_WEAK_PROOF")]
    return (*kept, *([unnoticed_notice(silent, precision, len(bundle.spec.inputs))] if silent else []))


def _why_no_route(bundle: Bundle, framework: type[Framework], mode: Mode) -> str:
    return route_to(bundle, framework.name, framework.implementation).why_not_in("fp32", mode)


def with_own_bounds(name: ContestantName, materials: Materials) -> Materials:
    """Let answers of the contestant be as far off as the types explain to which its route rounds; else the same.

    The materials are of the file that it runs.
    """
    if materials.work.source is None or materials.work.precision != "fp32" or not name.framework:
        return materials
    framework, bundle = framework_named(name.framework), bundle_in(materials.folder)
    bounds = None if framework.has_own_model else route_to(bundle, framework.name, framework.implementation).bounds
    return materials if bounds is None else replace(materials, output_tolerances=bundle.tolerances[bounds])


def _bundle_for(name: ContestantName, materials: Materials) -> Bundle:
    """Of the file that the contestant runs, where the model has several."""
    source = materials.work.in_file(name.file).source
    return bundle_in(materials.folder if source is None else folder_of(materials.folder, source.export))


def without_route(contestants: Sequence[ContestantName], works: Sequence[Materials]) -> dict[ContestantName, NoRoute]:
    """Contestants that none of the works can get to, as far as that is known from users' models."""
    found: dict[ContestantName, NoRoute] = {}
    for name in contestants:
        if not name.framework:
            continue
        framework = framework_named(name.framework)
        if framework.has_own_model:
            continue
        reasons = [
            ""
            if materials.work.source is None
            else _why_no_route(_bundle_for(name, materials), framework, materials.work.mode)
            for materials in works
        ]
        if reasons and all(reasons):
            found[name] = NoRoute(f"{framework.name} cannot run {works[0].work.model}: {reasons[0]}")
    return found


def require_room_for_weights(contestants: Sequence[ContestantName], works: Sequence[Materials]) -> None:
    """Refuse a work before any contestant starts, where the weights that each one holds are more than what is free."""
    available = available_memory_bytes()
    frameworks = [framework_named(name.framework) if name.framework else None for name in contestants]
    if available is None or any(each is None or each.has_own_model for each in frameworks):
        return  # a server may be on another machine
    for materials in works:
        needed = materials.weight_bytes
        if needed > available:
            raise InvalidRequest(
                f"{materials.work.label}: each contestant needs about {quantity_text.size(needed)} for the weights "
                f"alone, and {quantity_text.size(available)} are free; close other programs, or use a machine with "
                "more memory",
                code="E_SOURCE_SIZE",
            )
