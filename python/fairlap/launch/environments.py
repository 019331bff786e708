"""Virtual environments for contestants with a version: created on demand with venv and pip, cached, shared, removable.

The user's pip settings apply. The folder is named after the hash of the requirements; a file in it gets its date last,
which marks a complete environment, and a lock prevents two processes from creating the same one.

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
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal

from fairlap.errors import FairlapError, InvalidRequest, reason_of, shortened
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache

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


def key_of(requirements: tuple[str, ...]) -> str:
    made_of = [*sorted(requirements), *WORKER_NEEDS, platform.python_version(), platform.machine(), sys.base_prefix]
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]


@contextmanager
def environment_with(requirements: tuple[str, ...], report: Report) -> Iterator[Environment]:
    """Hold the environment with these requirements, created if necessary; it cannot be removed while it is in use."""
    key = key_of(requirements)
    folder = environments_folder() / key
    make_cache_folder(folder.parent)
    if _complete(folder) is None:  # without the lock: this process may already hold it as a user
        with _lock(key, fcntl.LOCK_EX):
            if _complete(folder) is None:
                _make(folder, requirements, report)
    with _lock(key, fcntl.LOCK_SH):
        found = _complete(folder)
        if found is None:
            raise InstallFailed(f"the environment for {', '.join(requirements)} was removed before it could be used")
        link_packages(found.folder)
        yield found


def environments() -> list[Environment]:
    """All environments, the oldest first, then incomplete ones: those whose installation was killed, or goes on."""
    folder = environments_folder()
    found = [_environment(path) for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
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


@contextmanager
def _lock(key: str, kind: int) -> Iterator[None]:
    """Lock an environment, and keep the lock file afterwards, since removing it would admit two holders."""
    with (environments_folder() / f"{key}.lock").open("a") as file:
        fcntl.flock(file, kind)
        yield


def _environment(folder: Path) -> Environment:
    try:
        mark = json.loads((folder / _MARK).read_text())
        return Environment(folder.name, folder, tuple(mark["requirements"]), mark["made"])
    except (OSError, ValueError, KeyError, TypeError):
        return Environment(folder.name, folder, (), "")


def _complete(folder: Path) -> Environment | None:
    found = _environment(folder)
    return found if found.made else None


def _mark(folder: Path, requirements: tuple[str, ...], made: str) -> None:
    (folder / _MARK).write_text(json.dumps({"requirements": list(requirements), "made": made}))


def _log_of(folder: Path) -> Path:
    return folder.with_suffix(".log")


def _make(folder: Path, requirements: tuple[str, ...], report: Report) -> None:
    report(f"creating an environment for {', '.join(requirements)}; this can take minutes and happens only once")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
        (folder / _TEMPORARY).mkdir()
        _mark(folder, requirements, "")
        with _log_of(folder).open("wb") as log:
            _run([sys.executable, "-m", "venv", str(folder)], requirements, log.fileno(), folder)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
            _run([*pip, *requirements, *WORKER_NEEDS], requirements, log.fileno(), folder)
        shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)
        link_packages(folder)
        _mark(folder, requirements, time.strftime("%Y-%m-%dT%H:%M:%S"))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InstallFailed(f"cannot create an environment for {', '.join(requirements)}: {reason_of(error)}") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(command: list[str], requirements: tuple[str, ...], log: int, folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    environment["TMPDIR"] = str(folder / _TEMPORARY)  # what a killed pip leaves goes with the environment
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, timeout=_INSTALL_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise InstallFailed(f"installing {', '.join(requirements)} took more than an hour and was stopped") from None
    if done.returncode != 0:
        log_file = _log_of(folder)
        why = f"{_first_error(log_file)} (full log: {log_file})"
        raise InstallFailed(f"installing {', '.join(requirements)} failed: {why}")


def _first_error(log: Path) -> str:
    """pip's last error line, else the last line it printed."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return shortened((errors or lines or ["no output"])[-1].removeprefix("ERROR:").strip())
