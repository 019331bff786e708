"""Which versions of which packages a saved run used, as pip takes them."""

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

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"(?P<public>[0-9][A-Za-z0-9.!]*)(?P<local>\+[A-Za-z0-9._-]+)?")
_PYTHON = re.compile(r"cpython (?P<version>[0-9]+\.[0-9]+\.[0-9]+(?:(?:a|b|rc)[0-9]+)?)\+?")


@dataclass(frozen=True)
class Versions:
    python: str
    requirements: tuple[str, ...]  # fairlap, and what was imported beside it
    constraints: tuple[str, ...]  # whatever else was there, should anything ask for it
    environments: tuple[str, ...]  # of contestants for which fairlap makes an environment
    builds: tuple[str, ...]  # versions with a label of their maker, which an index may not have


def versions_of(run: Run) -> Versions:
    """What a file says is checked before it gets near a shell."""
    installed = {
        _name(name.removeprefix(software.PREFIX)): version
        for name, version in run.machine.items()
        if name.startswith(software.PREFIX)
    }
    here: dict[str, str] = {"fairlap": _pinned("fairlap", run.fairlap)}
    apart: dict[str, str] = {}
    builds: set[str] = set()
    for contestant in run.plan.contestants:
        packages = _packages(contestant)
        if contestant.version or not packages:
            continue  # a version that was asked for stands in the plan
        ran = dict(installed)
        first = next(iter(packages))
        if told := _version_that_ran(run, contestant):
            ran[first] = told
        in_own_environment = bool(installed) and first not in installed
        if in_own_environment:
            apart |= {first: _pinned(first, told)} if told else {}
        else:
            here |= {name: _pinned(name, ran[name]) if name in ran else wanted for name, wanted in packages.items()}
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


def _packages(contestant: ContestantName) -> dict[str, str]:
    """By name what its adapter asks pip for, the framework's own first. None for programs and for callables."""
    if not contestant.framework:
        return {}
    try:
        listed = framework_named(contestant.framework).packages
    except InvalidRequest:  # an adapter of another package, which is not here
        listed = (_name(contestant.framework),)
    return {_bare(wanted): wanted for wanted in listed}


def _bare(wanted: str) -> str:
    """The name in front of what pip is asked for."""
    found = _NAME.match(wanted)
    return found.group() if found else _name(wanted)


def _version_that_ran(run: Run, contestant: ContestantName) -> str:
    """What most of its processes told; empty when none of them came so far."""
    told = Counter(
        process.version for process in run.processes if process.contestant == contestant.text and process.version
    )
    return told.most_common(1)[0][0] if told else ""


def _pinned(name: str, version: str) -> str:
    """Without the label of who built it: ``2.13.0+cpu`` fits ``==2.13.0``, while an index may not have that build."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise InvalidRequest(f"the run says that {name} has version {version!r}, which is no version")
    return f"{name}=={found['public']}"


def _name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(f"the run names a package {name!r}, which is no name of one")
    return name


def _python(machine: Mapping[str, str]) -> str:
    told = machine.get("python", "")
    found = _PYTHON.fullmatch(told)
    if found is None:
        raise InvalidRequest(
            f"the run was made with Python {told or 'of a version that it does not tell'!r}; no recipe"
        )
    return found["version"]
