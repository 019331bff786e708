"""What a server that fairlap starts runs in: the environment at hand, or one that is made for its version."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.launch.environments import environment_with
from fairlap.launch.packages.installed_packages import hidden_by, packages_in
from fairlap.launch.packages.making import making_of
from fairlap.launch.runners import NotInstalled
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.machine.software import package_of
from fairlap.request.names import ContestantName
from fairlap.scenarios.streams.started.server_start import ServerStart


@dataclass(frozen=True)
class ServerEnvironment:
    variables: dict[str, str]  # all but those that the start of the server sets
    version: str = ""  # of the server's package; empty for a command of the user's


def environment_of(
    contestant: ContestantName, start: ServerStart, stack: ExitStack, report: Callable[[str], None]
) -> ServerEnvironment:
    """Hold it for as long as the stack does. Raises InstallFailed."""
    variables = own_environment()
    if not start.packages:
        _require_modules(start)
        here = str(Path(sys.executable).parent)
        return ServerEnvironment(_searching(variables, here) if start.package else variables, _version_of(start))
    making = making_of(contestant.options)
    made = stack.enter_context(environment_with(start.packages, report, making))
    places = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    if hidden := hidden_by(made, start.package, places):
        raise InvalidRequest(
            f"{hidden[0]} would be imported from {hidden[1]}, which PYTHONPATH names, in place of what was installed",
            code="E_CONTESTANT",
        )
    variables |= {**making.variables, "VIRTUAL_ENV": str(made.folder)}
    found = packages_in(made).get(package_of(start.package), "")
    return ServerEnvironment(_searching(variables, str(made.python.parent)), found)


def _require_modules(start: ServerStart) -> None:
    if lacking := [each for each in start.modules if find_spec(each) is None]:
        raise NotInstalled(f"it needs {' and '.join(lacking)}, which this environment lacks: {start.install}")


def _searching(variables: dict[str, str], folder: str) -> dict[str, str]:
    return {**variables, "PATH": os.pathsep.join(filter(None, (folder, variables.get("PATH", ""))))}


def _version_of(start: ServerStart) -> str:
    try:
        return version(start.package) if start.package else ""
    except PackageNotFoundError:
        return ""
