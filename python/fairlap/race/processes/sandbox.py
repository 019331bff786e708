"""The sandbox of a contestant: whether it has one, whether it can, and what is left to it there."""

from __future__ import annotations

from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.frameworks.programs.command import program_of
from fairlap.launch.runners import Runner
from fairlap.models.code_hash import folders_of_model_code
from fairlap.models.sources.registry import require_kind
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.custom_libraries import libraries_of
from fairlap.race.planning.plan import Plan
from fairlap.race.scenario_side import race_side_of
from fairlap.request.commands import words_of
from fairlap.request.names import BENCHMARK, CALLABLES, COMMAND, FOLDER, PATH, RUN, ContestantName
from fairlap.scenarios.contract import scenario_of
from fairlap.worker.process_options import process_options_in
from fairlap.worker.protocol import Sandbox
from fairlap.worker.serving import over_http


def require_sandboxable(plan: Plan) -> None:
    """Refuse contestants that need the network, and programs in another language, which do not confine themselves."""
    for name in plan.contestants:
        why = ""
        if name.program:
            why = "a program that speaks the worker protocol would have to confine itself"
        elif name.url or over_http.OPTION in name.framework_options:
            why = "a sandbox has no network"
        elif any(work.scale is not None and (work.scale.ranks > 1 or work.scale.hosts) for work in plan.works):
            why = "ranks talk through the network, which a sandbox does not have"
        if why and _is_sandboxed(plan, name):
            raise InvalidRequest(f"{name.text} cannot race in a sandbox: {why}", code="E_SANDBOX")


def _is_sandboxed(plan: Plan, name: ContestantName) -> bool:
    return plan.sandbox or process_options_in(name.framework_options).sandbox


def sandbox_of(plan: Plan, materials: Materials, runner: Runner) -> Sandbox | None:
    """List what a contestant gets, and what it is made of; None for one that is not in a sandbox."""
    if not _is_sandboxed(plan, runner.name):
        return None
    readable, writable = reached_by(plan, materials, runner)
    return Sandbox(tuple(map(str, readable)), tuple(map(str, writable)), gpu=plan.device != "cpu")


def reached_by(plan: Plan, materials: Materials, runner: Runner) -> tuple[list[Path], list[Path]]:
    """List the files and folders that a contestant reads, and those that it writes."""
    work, options = materials.work, runner.name.framework_options
    readable = [materials.folder, *_folders_of(materials.package)]
    readable += [Path(plan.data)] if "/" in plan.data else []
    readable += race_side_of(scenario_of(plan, materials.work)).readable(materials.work)
    writable = [runner.scratch]
    if (source := work.source) is not None:
        read = [Path(path) for path, _ in source.files]
        readable += [*read, *require_kind(source).readable(source)] if read else [Path(source.folder)]
        writable.insert(0, materials.folder)  # where some keep what they converted
    readable += [Path(path) for _, path in libraries_of(runner.name)]
    if runner.name.framework == COMMAND:
        folder = options.get(FOLDER) or str(Path.cwd())
        readable += [Path(folder), program_of(words_of(options[RUN]), folder).parent]
    if runner.name.framework == BENCHMARK:
        readable += [Path(options["suite"]).parent, Path(options.get(PATH) or ".").absolute()]
    if runner.name.framework == CALLABLES:  # a callable, of a module in the current folder or in a checkout
        readable += [Path.cwd(), Path(options.get(PATH) or ".").absolute()]
    return readable, writable


def _folders_of(package: str) -> list[Path]:
    if Path(package).is_absolute():
        return [Path(package)]
    return [folder.resolve() for folder in folders_of_model_code(package)]
