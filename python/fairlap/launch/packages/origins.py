"""Origins of contestants' packages when a race is planned: each is found, checked and pinned by its content."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError, InvalidRequest, reason_of
from fairlap.launch.containers.images import image_named
from fairlap.launch.packages.interpreters import Interpreter, interpreter_named
from fairlap.launch.packages.source_trees import commit_of, project_in
from fairlap.machine.files.folder_hash import folder_hash
from fairlap.request.fields.package_origin import (
    BUILD,
    DOCKER,
    E_CONTESTANT,
    FIND_LINKS,
    INDEX,
    OF_ENVIRONMENTS,
    PYTHON,
    WITH,
    commit_in,
    is_pinned,
    named_in,
    pinned_commit,
    pinned_folder,
    pinned_wheel,
    source_in,
    wheel_in,
)
from fairlap.request.fields.started_server import SERVE
from fairlap.request.names import BENCHMARK, COMMAND, HTTP, ContestantName

_WHEEL = re.compile(
    r"(?P<package>[A-Za-z0-9][A-Za-z0-9._]*)-(?P<version>[A-Za-z0-9.!+_]+)(-\d[^-]*)?"
    r"-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)
_SYSTEMS = {"linux": ("linux", "manylinux", "musllinux"), "darwin": ("macosx",)}


class NoWheel(InvalidRequest):
    """A contestant's wheel is not here, is no wheel, or is for another Python or machine."""

    code = "E_WHEEL"


def with_pinned_origins(contestants: Sequence[ContestantName]) -> tuple[ContestantName, ...]:
    """Pin each; an invalid one is an error before anything is made."""
    return tuple(_pinned(name) if _of_environments(name) else name for name in contestants)


def require_installable(name: ContestantName) -> None:
    """Refuse options of environments that do not belong to each other, or to what runs in no environment."""
    given = _of_environments(name)
    if given and (name.program or name.framework == HTTP):
        raise InvalidRequest(
            f"{name.text}: {given[0]}= makes an environment for frameworks, callables and commands, not for this",
            code=E_CONTESTANT,
        )
    if DOCKER in given:
        _require_alone(name, given)
    if BUILD in given and (not name.release or (is_pinned(name.release) and source_in(name.release) is None)):
        raise InvalidRequest(
            f"{name.text}: {BUILD}= is for a source that is built here, {WITH}=./FOLDER or {WITH}=git+...@COMMIT",
            code=E_CONTESTANT,
        )
    for option in (INDEX, FIND_LINKS):
        if option in given and not (name.version or name.release):
            raise InvalidRequest(
                f"{name.text}: {option}= needs a release to install: {name.framework}==1.2.3, or {WITH}=numpy==2.1.0",
                code=E_CONTESTANT,
            )


def _require_alone(name: ContestantName, given: Sequence[str]) -> None:
    """Refuse what would have to be installed in an image, and what starts its containers itself."""
    others = [f"{each}=" for each in given if each != DOCKER] or [f"{name.framework}{name.version}"] * bool(
        name.version
    )
    if others:
        raise InvalidRequest(
            f"{name.text}: {DOCKER}= runs what its image has, and nothing is installed there; leave out {others[0]}, "
            "or build an image that has it",
            code=E_CONTESTANT,
        )
    if name.framework in (COMMAND, BENCHMARK, SERVE):
        raise InvalidRequest(
            f"{name.text}: {DOCKER}= is for frameworks and callables; name a command that starts the container, "
            "such as --command new='docker run --rm IMAGE ./bench'",
            code=E_CONTESTANT,
        )


def why_not_for(wheel: str, interpreter: Interpreter) -> str:
    """Why pip would refuse a wheel by its name; empty where it would not, as far as this can be known from it."""
    found = _WHEEL.fullmatch(wheel)
    if found is None:
        return "it is not named as a wheel is, PACKAGE-VERSION-PYTHON-ABI-PLATFORM.whl"
    minor = interpreter.version[1]
    abis = found["abi"].split(".")
    if not any(_is_for(each, minor, abis) for each in found["python"].split(".")):
        return f"it is for {found['python']}-{found['abi']}, and Python here is {interpreter.name}"
    native = {f"cp3{minor}t"} if interpreter.free_threaded else {f"cp3{minor}", "abi3"}
    if not {"none", *native} & set(abis):
        return f"it is for the ABI {found['abi']}, and Python here is {interpreter.name}"
    systems, machine = _SYSTEMS.get(sys.platform, ()), platform.machine()
    here = [each for each in found["platform"].split(".") if each == "any" or _is_of(each, systems, machine)]
    return "" if here or not systems else f"it is for {found['platform']}, and this is {sys.platform}_{machine}"


def _is_of(tag: str, systems: tuple[str, ...], machine: str) -> bool:
    return tag.startswith(systems) and tag.endswith((machine, "universal2"))


def _is_for(tag: str, minor: int, abis: Sequence[str]) -> bool:
    found = re.fullmatch(r"(py|cp)3(\d*)", tag)
    if found is None:
        return False
    if found[2] == "":
        return True
    return int(found[2]) == minor or (int(found[2]) < minor and (found[1] == "py" or "abi3" in abis))


def _of_environments(name: ContestantName) -> list[str]:
    options = [option for option, _ in name.options if option in OF_ENVIRONMENTS]
    return [each for each in options if each == WITH] if name.program else options


def _pinned(name: ContestantName) -> ContestantName:
    require_installable(name)
    try:
        interpreter = interpreter_named(name.python)
        options = tuple((option, _pinned_value(option, value, interpreter)) for option, value in name.options)
    except FairlapError as error:
        raise InvalidRequest(f"{name.text}: {error}", code=error.code) from None
    pinned = msgspec.structs.replace(name, options=options)
    require_installable(pinned)
    return pinned


def _pinned_value(option: str, value: str, interpreter: Interpreter) -> str:
    if option == WITH:
        return _pinned_origin(value, interpreter)
    if option == PYTHON and "/" in value:  # a link is kept: it is how an environment is found
        return interpreter.path
    if option == DOCKER:
        return image_named(value).pinned
    if option == FIND_LINKS and "://" not in value:
        folder = Path(value).expanduser().absolute()
        if not folder.is_dir():
            raise NoWheel(f"{FIND_LINKS}={value} is not a folder")
        return str(folder)
    return value


def _pinned_origin(value: str, interpreter: Interpreter) -> str:
    if is_pinned(value):
        return value
    if (named := commit_in(value)) is not None:
        commit, package = commit_of(*named)
        return pinned_commit(package, named[0], commit)
    path = Path(value).expanduser().absolute()
    if path.is_dir():
        folder = path.resolve()
        return pinned_folder(project_in(folder), folder, folder_hash(folder))
    return _pinned_file(value, path, interpreter)


def _pinned_file(value: str, path: Path, interpreter: Interpreter) -> str:
    if not path.is_file():
        raise NoWheel(f"{value} is not here; name a wheel, or a folder with a pyproject.toml")
    if path.suffix != ".whl":
        raise NoWheel(f"{value} is not a wheel: its name does not end with .whl")
    if why := why_not_for(path.name, interpreter):
        raise NoWheel(f"{value}: {why}")
    try:
        digest = _sha256(path)
    except OSError as error:
        raise NoWheel(f"{value} cannot be read: {reason_of(error)}") from None
    return pinned_wheel(path.name.partition("-")[0], path, digest)


def with_wheel_here(name: ContestantName) -> ContestantName:
    """Take a wheel that is not at its place from the current folder, by its name and SHA-256."""
    there = wheel_in(name.release)
    if there is None or there[0].exists():
        return name
    here = Path.cwd() / there[0].name
    if not here.is_file() or _sha256(here) != there[1]:
        return name
    moved = pinned_wheel(named_in(name.release), here, there[1])
    return msgspec.structs.replace(
        name, options=tuple((option, moved if option == WITH else value) for option, value in name.options)
    )


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
