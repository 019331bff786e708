"""Virtual environments for contestants with a version: created on demand with venv and pip, cached, shared, removable.

The user's pip settings apply. The folder is named after the hash of what it is made from, of wheels and sources their
content; a file in it gets its date last, which marks a complete environment, and a lock prevents two processes from
creating the same one.

fairlap and third-party plug-ins are linked into each environment, so that its worker runs the same code as this
process and nothing else of this environment is visible there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal

from fairlap.errors import FairlapError, InvalidRequest, reason_of, shortened
from fairlap.launch.packages.built_wheels import PLACES_OF_PYTHON, remove_wheel, wheels_in
from fairlap.launch.packages.interpreters import Interpreter
from fairlap.launch.packages.making import AS_USUAL, Making, lay_on, runs_same_python, with_built_wheels
from fairlap.launch.packages.own_package import own_source, own_wheel, release
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.machine.programs.guarded_command import run_guarded
from fairlap.request.fields.package_origin import content_of
from fairlap.secrets import without_secrets

PLUG_IN_GROUPS = ("fairlap.frameworks", "fairlap.workloads", "fairlap.sources")


def linked_packages() -> tuple[Path, ...]:
    """Find the folders (or files) of the top-level modules that every worker must be able to import."""
    names = {"fairlap"}
    for group in PLUG_IN_GROUPS:
        for entry in entry_points(group=group):
            names.add(entry.module.partition(".")[0])
    return tuple(sorted(path for name in names if (path := _home_of(name)) is not None))


def link_packages(environment: Path) -> None:
    """Renew the links: fairlap may have been reinstalled since the environment was created."""
    [site] = environment.glob("lib/python*/site-packages")
    for target in linked_packages():
        link = site / target.name
        if target.name == "fairlap" and not runs_same_python(site):  # it is installed there
            continue
        if link.is_symlink() and link.resolve() == target.resolve():
            continue
        if link.is_symlink():
            link.unlink(missing_ok=True)
        if not link.exists():
            link.symlink_to(target)


def _home_of(name: str) -> Path | None:
    try:
        module = import_module(name)
    except ImportError:
        return None
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    path = Path(file)
    return path.parent if path.name == "__init__.py" else path


WORKER_NEEDS = ("numpy", "msgspec", "nvidia-ml-py", "scipy")
_TEMPORARY = "tmp"
_WHEELS = "wheels"  # built from sources
_MARK = "made-from.json"
_INSTALL_LIMIT_S = 3600.0

Report = Callable[[str], None]
State = Literal["complete", "incomplete", "being made"]


class InstallFailed(FairlapError):
    """pip failed. The message has its first error, the log file its whole output."""

    code = "E_INSTALL"


@dataclass(frozen=True)
class Environment:
    key: str
    folder: Path
    requirements: tuple[str, ...]  # empty where an incomplete one does not say them
    made: str  # date and time; empty while it is incomplete
    options: tuple[str, ...] = ()  # of the contestant, which it was made with

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def state(self) -> State:
        if self.made:
            return "complete"
        try:
            with _lock(self.key, fcntl.LOCK_SH | fcntl.LOCK_NB):
                return "incomplete"
        except BlockingIOError:
            return "being made"

    def size_bytes(self) -> int:
        """Of what is there: pip removes files while it makes one."""
        paths = (Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names)
        return sum(_size(path) for path in paths)


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return 0 if path.is_symlink() else path.lstat().st_size
    return 0


def environments_folder() -> Path:
    """``FAIRLAP_ENVS``, else in the cache."""
    if chosen := os.environ.get("FAIRLAP_ENVS"):
        return Path(chosen)
    return work_cache() / "envs"


def wheels_folder() -> Path:
    return environments_folder() / _WHEELS


def key_of(requirements: tuple[str, ...], making: Making = AS_USUAL) -> str:
    python = making.interpreter
    contents = sorted(map(content_of, requirements))
    made_of = [*contents, *WORKER_NEEDS, python.name, platform.machine(), python.base_prefix, *making.key_lines]
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]


@contextmanager
def environment_with(requirements: tuple[str, ...], report: Report, making: Making = AS_USUAL) -> Iterator[Environment]:
    """Hold the environment with these requirements, created if necessary; it cannot be removed while it is in use."""
    key = key_of(requirements, making)
    folder = environments_folder() / key
    make_cache_folder(folder.parent)
    if _complete(folder) is None:  # without the lock: this process may already hold it as a user
        with _lock(key, fcntl.LOCK_EX):
            if _complete(folder) is None:
                _make(folder, requirements, report, making)
    with _lock(key, fcntl.LOCK_SH):
        found = _complete(folder)
        if found is None:
            what = _named(requirements, making)
            raise InstallFailed(f"the environment for {what} was removed before it could be used")
        link_packages(found.folder)
        with suppress(OSError):
            os.utime(folder / _MARK)  # when it was used last
        yield found


def environments() -> list[Environment]:
    """All environments, the oldest first, then incomplete ones: those whose installation was killed, or goes on."""
    folder = environments_folder()
    paths = [each for each in folder.iterdir() if each.is_dir() and each.name != _WHEELS] if folder.is_dir() else []
    found = map(_environment, paths)
    return sorted(found, key=lambda each: (not each.made, each.made, each.key))


def remove_environment(key: str) -> None:
    """Remove an environment, complete or not, unless a race is using it."""
    folder = environments_folder() / key
    if not folder.is_dir() or folder.parent != environments_folder():
        raise InvalidRequest(f"no environment named {key!r}; `fairlap envs` lists them")
    try:
        with _lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(folder)
            _log_of(folder).unlink(missing_ok=True)
    except BlockingIOError:
        raise InvalidRequest(f"the environment {key} is in use; wait for the race that uses it to end") from None


def prune(unused_s: float) -> list[str]:
    """Remove what no race has used for so long, incomplete environments, and wheels that were built as long ago.

    What is in use stays. Return the keys of the environments, and the files of the wheels.
    """
    removed = []
    for each in environments():
        if each.state == "incomplete" or (each.made and _age_s(each.folder / _MARK) >= unused_s):
            with suppress(InvalidRequest):  # it is in use
                remove_environment(each.key)
                removed.append(each.key)
    for place in wheels_in(wheels_folder()):
        names = [each.name for each in place.glob("*.whl")]
        if _age_s(place) >= unused_s and remove_wheel(place):
            removed += names
    return removed


def _age_s(path: Path) -> float:
    with suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime
    return 0.0


@contextmanager
def _lock(key: str, kind: int) -> Iterator[None]:
    """Lock an environment, and keep the lock file afterwards, since removing it would admit two holders."""
    with (environments_folder() / f"{key}.lock").open("a") as file:
        fcntl.flock(file, kind)
        yield


def _environment(folder: Path) -> Environment:
    try:
        mark = json.loads((folder / _MARK).read_text())
        options = tuple(map(str, mark.get("options", ())))
        return Environment(folder.name, folder, tuple(mark["requirements"]), mark["made"], options)
    except (OSError, ValueError, KeyError, TypeError):
        return Environment(folder.name, folder, (), "")


def _complete(folder: Path) -> Environment | None:
    found = _environment(folder)
    return found if found.made else None


def _mark(folder: Path, requirements: tuple[str, ...], making: Making, made: str) -> None:
    known = {"requirements": list(map(without_secrets, requirements)), "options": list(making.shown), "made": made}
    (folder / _MARK).write_text(json.dumps(known))


def _log_of(folder: Path) -> Path:
    return folder.with_suffix(".log")


def _named(requirements: tuple[str, ...], making: Making) -> str:
    return ", ".join((*map(without_secrets, requirements), *making.shown))


def _make(folder: Path, requirements: tuple[str, ...], report: Report, making: Making) -> None:
    what = _named(requirements, making)
    report(f"creating an environment for {what}; this can take minutes and happens only once")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        interpreter = making.interpreter
        folder.mkdir()
        (folder / _TEMPORARY).mkdir()
        _mark(folder, requirements, making, "")
        with _log_of(folder).open("wb") as log:
            _run([interpreter.path, "-m", "venv", str(folder)], what, log.fileno(), folder)
            python = folder / "bin" / "python"
            [site] = folder.glob("lib/python*/site-packages")
            lay_on(site, interpreter)
            pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *making.pip_options]
            installed = with_built_wheels(requirements, making, python, wheels_folder())
            if not interpreter.is_alike:
                installed.append(_own_package(pip, interpreter, log.fileno(), folder, report))
            _run([*pip, *installed, *WORKER_NEEDS], what, log.fileno(), folder)
        shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)
        link_packages(folder)
        _mark(folder, requirements, making, time.strftime("%Y-%m-%dT%H:%M:%S"))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InstallFailed(f"cannot create an environment for {what}: {reason_of(error)}") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _own_package(pip: list[str], interpreter: Interpreter, log: int, folder: Path, report: Report) -> str:
    """Name fairlap itself for another Python: a wheel of its source, or its release, if pip finds that."""
    source = own_source()
    if source is not None:
        report(f"building fairlap for Python {interpreter.name} from {source}; this can take minutes, once")
        wheel = own_wheel(source, folder / "bin" / "python", interpreter, wheels_folder())
        return f"fairlap @ {wheel.as_uri()}"
    try:
        _run([*pip, "--no-deps", release()], release(), log, folder)
    except InstallFailed:
        raise InstallFailed(
            f"pip has no {release()} for Python {interpreter.name}; let `{interpreter.path} -m pip wheel --no-deps "
            "--wheel-dir FOLDER SOURCE` build one from fairlap's source, and set PIP_FIND_LINKS=FOLDER"
        ) from None
    return release()


def _run(command: list[str], what: str, log: int, folder: Path) -> None:
    environment = dict(os.environ)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # in what is installed elsewhere; pip compiles what it installs itself
    environment["TMPDIR"] = str(folder / _TEMPORARY)  # what a killed pip leaves goes with the environment
    try:
        status = run_guarded(
            command, Path.cwd(), environment, output=log, within_s=_INSTALL_LIMIT_S, dropped=PLACES_OF_PYTHON
        )
    except subprocess.TimeoutExpired:
        raise InstallFailed(f"installing {what} took more than an hour and was stopped") from None
    if status != 0:
        log_file = _log_of(folder)
        why = f"{_first_error(log_file)} (full log: {log_file})"
        raise InstallFailed(f"installing {what} failed: {why}")


def _first_error(log: Path) -> str:
    """pip's last error line, else the last line it printed."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return shortened((errors or lines or ["no output"])[-1].removeprefix("ERROR:").strip())
