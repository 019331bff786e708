"""Packages of the tests, made known as pip would: by their entry points, here and in the workers of a race."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the frameworks of the tests import this in their workers, which start sooner without it
    import pytest

SUPPORT = Path(__file__).parent


def write_package(folder: Path, name: str, entry_points: Mapping[str, Mapping[str, str]]) -> Path:
    """Write what pip leaves of a package beside its modules, and return the folder of that."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines: list[str] = []
    for group, entries in entry_points.items():
        lines += [f"[{group}]", *(f"{entry} = {value}" for entry, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return info


def install_package(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    entry_points: Mapping[str, Mapping[str, str]],
    *modules: Path,
) -> None:
    """Install a package whose modules are in the folders ``modules``, which follow ``folder`` on the path."""
    write_package(folder, name, entry_points)
    paths = [str(folder), *map(str, modules)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH", "")])))
    for path in paths:
        monkeypatch.syspath_prepend(path)


def install_frameworks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, frameworks: Mapping[str, str], *modules: Path
) -> None:
    """Install frameworks by name, as ``module:class`` of a module in this folder or in one of ``modules``."""
    name = f"fairlap-{next(iter(frameworks))}"
    install_package(folder, monkeypatch, name, {"fairlap.frameworks": frameworks}, SUPPORT, *modules)
