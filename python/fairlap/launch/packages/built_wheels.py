"""Wheels that are built from sources, once for each content, flags and Python, and kept beside the environments.

A wheel is built in a temporary folder from a copy of the source, and moved whole, so that a kill leaves nothing half.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fairlap.errors import shortened
from fairlap.launch.packages.interpreters import Interpreter
from fairlap.launch.packages.source_trees import NotBuilt, check_out, copy_tree
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.programs.guarded_command import run_guarded
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.request.fields.package_origin import content_of, named_in, source_in

_LIMIT_S = 3600.0 * 4  # a framework takes hours
_SHOWN_LINES = 2
PLACES_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME")
"""Variables that pip does not get, or it would take what they name for installed."""


def built_wheel(
    requirement: str,
    flags: Sequence[str],
    python: Path,
    interpreter: Interpreter,
    folder: Path,
    pip_options: Sequence[str] = (),
) -> Path:
    """Find the wheel of a source in the folder, built with the pip of ``python`` if it is not there."""
    named, fetch = _named(requirement, flags), partial(_fetch, requirement)
    return wheel_of(content_of(requirement), named, fetch, flags, python, interpreter, folder, pip_options)


def wheel_of(
    content: str,
    named: str,
    fetch: Callable[[Path], object],
    flags: Sequence[str],
    python: Path,
    interpreter: Interpreter,
    folder: Path,
    pip_options: Sequence[str] = (),
) -> Path:
    """Likewise of a source that ``fetch`` writes into a folder, where no wheel of this ``content`` is kept."""
    key = _key(content, flags, interpreter)
    make_cache_folder(folder)
    place, log = folder / key, folder / f"{key}.log"
    with _lock(folder / f"{key}.lock"):
        if not place.is_dir():
            _build(named, fetch, flags, [str(python), "-m", "pip", "wheel", *pip_options], place, log)
        [wheel] = place.glob("*.whl")
    return wheel


def wheels_in(folder: Path) -> list[Path]:
    """List the folders of wheels, one for each."""
    return [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []


def remove_wheel(place: Path) -> bool:
    """Remove a wheel, complete or not, with its log, unless it is being built; the environments made of it stay."""
    try:
        with _lock(place.with_suffix(".lock"), fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(place, ignore_errors=True)
            place.with_suffix(".log").unlink(missing_ok=True)
            return True
    except BlockingIOError:
        return False


def _key(content: str, flags: Sequence[str], interpreter: Interpreter) -> str:
    made_of = [content, *flags, interpreter.name, interpreter.base_prefix, platform.machine()]
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]


def _build(
    named: str, fetch: Callable[[Path], object], flags: Sequence[str], pip: Sequence[str], place: Path, log: Path
) -> None:
    making = place.with_suffix(".new")
    shutil.rmtree(making, ignore_errors=True)
    try:
        source, temporary, made = making / "source", making / "tmp", making / "made"
        temporary.mkdir(parents=True)
        fetch(source)
        variables = own_environment([name for name in os.environ if name.startswith("PIP_")])
        variables |= dict(flag.split("=", 1) for flag in flags)
        variables["TMPDIR"] = str(temporary)
        command = [*pip, "--disable-pip-version-check", "--no-deps", "--wheel-dir", str(made), str(source)]
        with log.open("wb") as output:
            status = run_guarded(
                command, Path.cwd(), variables, output=output.fileno(), within_s=_LIMIT_S, dropped=PLACES_OF_PYTHON
            )
        wheels = list(made.glob("*.whl"))
        if status or len(wheels) != 1:
            raise NotBuilt(f"building {named} failed: {_last_lines(log)} (full log: {log})")
        made.rename(place)
    except subprocess.TimeoutExpired:
        raise NotBuilt(f"building {named} took over {_LIMIT_S / 3600:g} hours") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _fetch(requirement: str, source: Path) -> None:
    found = source_in(requirement)
    assert found is not None
    place, content = found
    if "://" in place:
        check_out(place, content, source)
    else:
        copy_tree(Path(place), content, source)


def _named(requirement: str, flags: Sequence[str]) -> str:
    source = source_in(requirement)
    assert source is not None
    with_flags = f" with {' '.join(flags)}" if flags else ""
    return f"{named_in(requirement)} from {source[0]}{with_flags}"


def _last_lines(log: Path) -> str:
    """Find the last lines but for pip's own, which say that something went wrong, and point to what is above them."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    own = ("error:", "ERROR:", "note:", "hint:", "╰─>", "×", "│", "[end of output]", "[notice]", "Failed to build")
    said = [line for line in lines if not line.startswith(own)] or lines or ["no output"]
    return " / ".join(shortened(line) for line in said[-_SHOWN_LINES:])


@contextmanager
def _lock(file: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    with file.open("a") as opened:
        fcntl.flock(opened, kind)
        yield
