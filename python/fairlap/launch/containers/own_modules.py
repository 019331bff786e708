"""What a container is given of this environment: fairlap, plug-ins, and what the worker needs and the image lacks.

Each module is mounted read-only below one folder, which is searched first; so nothing of this environment hides a
module of the image.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from fairlap.launch.containers.images import NoImage
from fairlap.launch.environments import WORKER_NEEDS, linked_packages

ROOT = "/fairlap-worker"
SEARCHED = f"{ROOT}/python/packages"  # two levels, since a checkout has links that lead out of its packages
MODULES: Mapping[str, str] = {package: package for package in WORKER_NEEDS} | {"nvidia-ml-py": "pynvml"}
"""By package, what is imported of it."""

_NOT_MODULES = ("..", "__pycache__", "example.py")


def own_modules(missing: tuple[str, ...]) -> dict[Path, str]:
    """List what to mount, and where."""
    lacking = [package for package in WORKER_NEEDS if MODULES[package] in missing]
    tops = [*linked_packages(), *(top for package in lacking for top in _of(package))]
    found = {top: f"{SEARCHED}/{top.name}" for top in tops}
    for top in tops:
        if top.is_dir():
            found |= _linked_from(top)
    return found


def _of(package: str) -> list[Path]:
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        raise NoImage(f"neither the image nor this environment has {package}, which fairlap's worker needs") from None
    names = sorted({each.parts[0] for each in installed.files or ()} - {*_NOT_MODULES})
    return [Path(str(installed.locate_file(name))) for name in names]


def _linked_from(top: Path) -> dict[Path, str]:
    """Find the folders outside a package that its links lead to, as the models of a checkout."""
    found = {}
    for each in top.iterdir():
        target = str(each.readlink()) if each.is_symlink() else ""
        place = os.path.normpath(f"{SEARCHED}/{top.name}/{target}")
        if target.startswith("..") and place.startswith(f"{ROOT}/"):
            found[each.resolve()] = place
    return found
