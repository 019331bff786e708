"""What pip finds: the versions of a package, and the wheel that it takes for one. Its own settings apply."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fairlap.bisection.bisect_request import E_BISECT
from fairlap.errors import FairlapError, InvalidRequest, shortened

_LISTED = re.compile(r"^Available versions:(.*)$", re.MULTILINE)
_VERSION = re.compile(r"[A-Za-z0-9.!+_-]+")
_LIMIT_S = 300.0
_TIMED_OUT = 124


def versions_of(package: str, folders: Sequence[Path] = (), *, pre_releases: bool = False) -> list[str]:
    """List those that this Python can install, the oldest first; of the folders alone where some are given."""
    where = _only(folders)
    status, printed, errors = _pip("index", "versions", package, *where, *(("--pre",) if pre_releases else ()))
    listed = _LISTED.search(printed)
    if status or listed is None:
        raise InvalidRequest(f"pip finds no release of {package}: {_reason(errors)}", code=E_BISECT)
    found = [each.strip() for each in listed.group(1).split(",")]
    return [each for each in reversed(found) if _VERSION.fullmatch(each)]


def wheel_of(package: str, version: str, folders: Sequence[Path]) -> Path:
    """Find the wheel that pip would install, where several in the folders have this version."""
    options = ("--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-")
    _, printed, errors = _pip("install", *options, *_only(folders), f"{package}=={version}")
    try:
        [chosen] = json.loads(printed)["install"]
        return Path(unquote(urlsplit(chosen["download_info"]["url"]).path))
    except (ValueError, KeyError, TypeError):
        raise FairlapError(
            f"pip cannot choose a wheel of {package} {version}: {_reason(errors)}", code="E_INSTALL"
        ) from None


def _only(folders: Sequence[Path]) -> tuple[str, ...]:
    return ("--no-index", *(f"--find-links={folder}" for folder in folders)) if folders else ()


def _pip(*arguments: str) -> tuple[int, str, str]:
    """Return its status, what it printed, and its errors."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    command = [*_pip_command(), *arguments, "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return _TIMED_OUT, "", f"ERROR: it did not answer within {_LIMIT_S / 60:.0f} minutes"
    return done.returncode, done.stdout, done.stderr


def _pip_command() -> list[str]:
    """Find the pip of this environment, else the one that Python brings for new environments."""
    if find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    import ensurepip

    for wheel in sorted(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")):
        return [sys.executable, "-P", str(wheel / "pip")]
    raise FairlapError("pip is not installed here; install it, since it lists releases", code="E_NOT_INSTALLED")


def _reason(errors: str) -> str:
    """Give its last error, else the last line that it printed."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    wrong = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return shortened((wrong or lines or ["it gave no reason"])[-1])
