"""The packages and versions that a run used, as requirements for pip."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.machine import software
from fairlap.race.run import Run
from fairlap.request.names import ContestantName
from fairlap.request.work import Precision
from fairlap.worker.serving.over_http import OPTION, SERVER_PACKAGES

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_EXTRAS = re.compile(r"\[[A-Za-z0-9,_-]+\]")
_VERSION = re.compile(r"(?P<public>[0-9][A-Za-z0-9.!]*)(?P<local>\+[A-Za-z0-9._-]+)?")
_PYTHON = re.compile(r"cpython (?P<version>[0-9]+\.[0-9]+\.[0-9]+(?:(?:a|b|rc)[0-9]+)?)\+?")


@dataclass(frozen=True)
class Versions:
    python: str
    requirements: tuple[str, ...]  # fairlap and the packages of the contestants
    constraints: tuple[str, ...]  # other installed packages, for dependencies
    environments: tuple[str, ...]  # of contestants that run in a separate environment
    builds: tuple[str, ...]  # versions with a local label, which an index may lack


def versions_of(run: Run) -> Versions:
    """Every name and version of the run file is validated, since they end up in a shell command."""
    installed = {
        _name(name.removeprefix(software.PREFIX)): version
        for name, version in run.machine.items()
        if name.startswith(software.PREFIX)
    }
    here: dict[str, str] = {"fairlap": _pinned("fairlap", run.fairlap)}
    apart: dict[str, str] = {}
    builds: set[str] = set()
    for contestant in run.plan.contestants:
        if contestant.url:
            raise unusable(f"{contestant.url} is a server that was there before the race")
        if contestant.python or contestant.image or " @ " in contestant.release:
            raise unusable(f"the package, the Python or the image of {contestant.text} came from this machine")
        packages = _packages(contestant, run.plan.device, run.plan.precisions)
        if contestant.is_apart or not packages:
            continue  # the plan has the version that was asked for
        ran = dict(installed)
        first = next(iter(packages))
        if version := _version_that_ran(run, contestant):
            ran[first] = version
        in_own_environment = bool(installed) and first not in installed
        if in_own_environment:
            apart |= {first: _pinned(f"{first}{_extras(packages[first])}", version)} if version else {}
        else:
            here |= {
                name: _pinned(f"{name}{_extras(wanted)}", ran[name]) if name in ran else wanted
                for name, wanted in packages.items()
            }
        if "+" in ran.get(first, ""):
            builds.add(f"{first} {ran[first]}")
    rest = {name: _pinned(name, version) for name, version in installed.items() if name not in here}
    return Versions(
        python=_python(run.machine),
        requirements=tuple(sorted(here.values())),
        constraints=tuple(sorted(rest.values())),
        environments=tuple(sorted(apart.values())),
        builds=tuple(sorted(builds)),
    )


def unusable(why: str) -> InvalidRequest:
    return InvalidRequest(f"cannot make a recipe of this run: {why}", code="E_RECIPE")


def _packages(contestant: ContestantName, device: str, precisions: tuple[Precision, ...]) -> dict[str, str]:
    """By name, the requirements of its adapter, the framework first. Empty for programs and callables."""
    if not contestant.framework:
        return {}
    try:
        listed = framework_named(contestant.framework).packages_for(device, contestant.of(precisions))
    except InvalidRequest:  # an adapter of another package, which is not here
        listed = (_name(contestant.framework),)
    served = SERVER_PACKAGES if OPTION in contestant.framework_options else ()
    return {_bare(wanted): wanted for wanted in (*listed, *served)}


def _bare(wanted: str) -> str:
    """Extract the package name of a requirement."""
    found = _NAME.match(wanted)
    return found.group() if found else _name(wanted)


def _extras(wanted: str) -> str:
    """``[cuda13]`` of ``jax[cuda13]==0.10.2``."""
    found = _EXTRAS.search(wanted)
    return found.group() if found else ""


def _version_that_ran(run: Run, contestant: ContestantName) -> str:
    """Find the most frequent version of its processes; empty when none reported one."""
    versions = Counter(
        process.version for process in run.processes if process.contestant == contestant.text and process.version
    )
    return versions.most_common(1)[0][0] if versions else ""


def _pinned(name: str, version: str) -> str:
    """Without the local label: ``2.13.0+cpu`` satisfies ``==2.13.0``, while an index may not have that build."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise unusable(f"{version!r} of {name} is not a valid version")
    return f"{name}=={found['public']}"


def _name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise unusable(f"{name!r} is not a valid package name")
    return name


def _python(machine: Mapping[str, str]) -> str:
    python = machine.get("python", "")
    found = _PYTHON.fullmatch(python)
    if found is None:
        raise unusable(f"its Python is {python!r}; a recipe needs a release of CPython")
    return found["version"]
