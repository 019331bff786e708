"""How each contestant's processes are started: an interpreter with its environment, or a program."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.frameworks.contract import Framework, Settings, Unsupported
from fairlap.frameworks.registry import framework_named, is_importable, place_of
from fairlap.launch.environments import environment_with
from fairlap.launch.worker_process import python_worker
from fairlap.request.names import ContestantName
from fairlap.request.work import Precision
from fairlap.worker.slowdown import slowdown_in


class NotInstalled(FairlapError):
    """The framework or program of a contestant is not here."""

    code = "E_NOT_INSTALLED"


class NoRoute(FairlapError):
    """There is no way of a user's model into the framework of a contestant."""

    code = "E_UNSUPPORTED"


@dataclass(frozen=True)
class Runner:
    """How one contestant's processes are started, or why they cannot be (``missing``)."""

    name: ContestantName
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    missing: FairlapError | None = None
    adapter: str = ""


def runners_for(
    contestants: tuple[ContestantName, ...],
    threads: int,
    device: str,
    caches: Path,
    stack: ExitStack,
    report: Callable[[str], None],
    refused: Mapping[ContestantName, NoRoute] | None = None,
    precisions: tuple[Precision, ...] = (),
) -> list[Runner]:
    """One per contestant. A failed installation is the outcome of that contestant; the race continues. No environment
    is made for the ``refused``. ``precisions`` are those of the works.

    Each gets a separate folder in ``caches``: it must not find what another contestant or an earlier race compiled.
    """
    frameworks = require_known(contestants)
    refused = refused or {}
    return [
        Runner(name, missing=refused[name])
        if name in refused
        else _runner(name, frameworks.get(name), threads, device, str(caches / str(place)), stack, report, precisions)
        for place, name in enumerate(contestants)
    ]


def require_known(contestants: tuple[ContestantName, ...]) -> dict[ContestantName, type[Framework]]:
    """The adapters of all contestants but programs. Raises InvalidRequest for an unknown name or variant."""
    frameworks = {name: framework_named(name.framework) for name in contestants if name.framework}
    for name, framework in frameworks.items():
        if name.variant not in framework.variants:
            known = ", ".join(
                f"{name.framework}:{variant}" if variant else name.framework for variant in framework.variants
            )
            raise InvalidRequest(f"{name.text}: {name.framework} has no variant {name.variant!r}; it has {known}")
        if name.version and not framework.packages:
            raise InvalidRequest(f"{name.text}: {name.framework} has no versions, because it is not a package")
        try:
            slowdown_in(dict(name.options))
        except Unsupported as error:
            raise InvalidRequest(f"{name.text}: {error}") from None
    return frameworks


def _runner(
    name: ContestantName,
    framework: type[Framework] | None,
    threads: int,
    device: str,
    cache_folder: str,
    stack: ExitStack,
    report: Callable[[str], None],
    precisions: tuple[Precision, ...],
) -> Runner:
    if framework is None:
        program = shutil.which(name.program)
        if program is None:
            return Runner(name, missing=NotInstalled(f"{name.program} is not an executable program"))
        return Runner(name, (str(Path(program).resolve()),), adapter=name.program)
    wanted = framework.environment_for(
        Settings(name.threads(threads), name.variant, device, name.framework_options, cache_folder=cache_folder)
    )
    if not name.version and is_importable(framework):
        return Runner(name, python_worker(), wanted, adapter=place_of(name.framework))
    try:
        made = stack.enter_context(environment_with(requirements_of(name, framework, device, precisions), report))
    except FairlapError as error:
        return Runner(name, missing=error)
    return Runner(name, python_worker(made.python), wanted, adapter=place_of(name.framework))


def requirements_of(
    name: ContestantName, framework: type[Framework], device: str = "cpu", precisions: tuple[Precision, ...] = ()
) -> tuple[str, ...]:
    """The requested version replaces the one that fairlap was tested with; the other packages stay."""
    packages = framework.packages_for(device, name.of(precisions))
    if not name.version:
        return packages
    first, *others = packages
    bare = first.partition("==")[0]
    return (f"{bare}{name.version}", *others)
