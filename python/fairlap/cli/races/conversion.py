"""Convert a user's model for one framework: race it alone for a moment, with all checks, and keep the file."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.printed_document import PrintedDocument

PROOF = "proof.json"
_SECONDS = 0.05


class ConversionFailed(FairlapError):
    """The framework cannot run the model, or gives other answers."""

    code = "E_SOURCE"


class Proof(PrintedDocument, frozen=True, tag="fairlap.conversion/1"):
    """What was compared, and how far the framework's answers are from the reference."""

    source: str
    framework: str
    version: str | None
    route: str
    conversion_s: float | None
    reference: str
    error_relative: float | None
    error_absolute: float | None
    weights_proven: bool  # read back and hashed; else the outputs alone prove that they are the same
    shapes: dict[str, tuple[int, ...]]
    files: dict[str, str]  # SHA-256 by name; none where the framework gets the model as a function
    notices: tuple[Notice, ...]


def converted(
    text: str, framework: str, folder: Path, bindings: Mapping[str, Any], notify: Callable[[str], None]
) -> Proof:
    """Write the files with their proof into a new folder; nothing where there are none."""
    from fairlap.frameworks.registry import framework_named
    from fairlap.models.sources.bundle import bundle_in, route_to
    from fairlap.race.equal_work.material_sources import materials_for
    from fairlap.race.planning.plan_from_request import plan_of
    from fairlap.race.planning.sources_from_request import sources_named
    from fairlap.race.race import Race
    from fairlap.race.run import Run
    from fairlap.request.names import Contestants
    from fairlap.request.race_request import RaceRequest
    from fairlap.request.units import Seconds
    from fairlap.results.results import results_of

    adapter = framework_named(framework)
    _require_new(folder)
    request = RaceRequest(
        models=(text,), contestants=Contestants(framework), blocks=1, seconds=Seconds(_SECONDS), threads=1, **bindings
    )
    named = sources_named(request, text)
    if len(named) != 1 or named[0].exports:
        raise InvalidRequest(f"{text} is not a model file with one set of shapes; name one of your own models")
    plan = plan_of(request, notify)
    (work,), (seed, *_) = plan.works, plan.data_seeds
    materials = materials_for(work, seed)
    bundle = bundle_in(materials.folder)
    route = route_to(bundle, framework, adapter.implementation)
    if route.why_not:
        raise ConversionFailed(f"{framework} cannot run {text}: {route.why_not}", code="E_UNSUPPORTED")
    notify(f"{text}: converting it for {framework} and comparing its answers")
    race = Race(plan)
    run = Run(plan, race.processes, {}, {}, datetime.now(UTC).isoformat(timespec="seconds"))
    race.run()  # alongside another race: none of its times is used
    (row,) = results_of(run, run.began_at).rows
    if row.outcome != "finished":
        raise ConversionFailed(f"{framework}: {row.message}", code=row.code or "E_SOURCE")
    files = adapter.files(materials.workload("inputs"))
    proof = Proof(
        bundle.source.name,
        framework,
        row.version,
        row.route,
        race.processes[0].conversion_s,
        bundle.reference,
        row.error_relative,
        row.error_absolute,
        route.holds_weights,
        {tensor.name: tensor.sized(bundle.batch) for tensor in bundle.spec.inputs},
        {file.name: _sha256(file) for file in files},
        bundle.notices,
    )
    if files:
        folder.mkdir(parents=True)
        for file in files:
            shutil.copyfile(file, folder / file.name)
        (folder / PROOF).write_bytes(msgspec.json.format(msgspec.json.encode(proof), indent=2) + b"\n")
    return proof


def _require_new(folder: Path) -> None:
    """Check that the folder can be made, before the conversion takes minutes."""
    if folder.exists():
        raise InvalidRequest(f"{folder} exists; name a new folder with --into", code="E_FILE")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        folder.rmdir()
    except OSError as error:
        raise InvalidRequest(f"cannot create {folder}: {error.strerror}", code="E_FILE") from None


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
