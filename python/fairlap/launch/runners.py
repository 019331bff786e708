"""From a contestant's name to what starts its process: an interpreter with its environment, or a program."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.frameworks.contract import Framework, Settings, Unsupported
from fairlap.frameworks.registry import framework_named, is_importable, place_of
from fairlap.launch.environments import environment_with
from fairlap.launch.worker_process import python_worker
from fairlap.request.names import ContestantName
from fairlap.worker.slowdown import slowdown_in


@dataclass(frozen=True)
class Runner:
    """How one contestant's processes are started. ``missing`` says why they cannot be, and then nothing is."""

    name: ContestantName
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    missing: str = ""
    adapter: str = ""


def runners_for(
    contestants: tuple[ContestantName, ...], threads: int, device: str, stack: ExitStack, tell: Callable[[str], None]
) -> list[Runner]:
    """One for each contestant. What cannot be installed is that contestant's outcome, not the end of the race."""
    frameworks = require_known(contestants)
    return [_runner(name, frameworks.get(name), threads, device, stack, tell) for name in contestants]


def require_known(contestants: tuple[ContestantName, ...]) -> dict[ContestantName, type[Framework]]:
    """The adapters of those that are no programs; a name or variant that is not there is refused."""
    frameworks = {name: framework_named(name.framework) for name in contestants if name.framework}
    for name, framework in frameworks.items():
        if name.variant not in framework.variants:
            known = ", ".join(
                f"{name.framework}:{variant}" if variant else name.framework for variant in framework.variants
            )
            raise InvalidRequest(f"{name.text}: {name.framework} has no variant {name.variant!r}; it has {known}")
        if name.version and not framework.packages:
            raise InvalidRequest(f"{name.text}: {name.framework} is no package and has no versions to choose from")
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
    stack: ExitStack,
    tell: Callable[[str], None],
) -> Runner:
    if framework is None:
        program = shutil.which(name.program)
        if program is None:
            return Runner(name, missing=f"{name.program} is not a program that can be run")
        return Runner(name, (str(Path(program).resolve()),), adapter=name.program)
    wanted = framework.environment_for(Settings(threads, name.variant, device, dict(name.options)))
    if not name.version and is_importable(framework):
        return Runner(name, python_worker(), wanted, adapter=place_of(name.framework))
    try:
        made = stack.enter_context(environment_with(requirements_of(name, framework), tell))
    except FairlapError as error:
        return Runner(name, missing=str(error))
    return Runner(name, python_worker(made.python), wanted, adapter=place_of(name.framework))


def requirements_of(name: ContestantName, framework: type[Framework]) -> tuple[str, ...]:
    """The version asked for replaces the one that fairlap was tested with; what comes beside stays."""
    first, *others = framework.packages
    if not name.version:
        return framework.packages
    bare = first.partition("==")[0]
    return (f"{bare}{name.version}", *others)
