"""The example package made importable, as pip would: its modules and its entry points on the path."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

_PACKAGE = Path(__file__).parent


def install_example(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((_PACKAGE / "pyproject.toml").read_text())["project"]
    info = folder / "fairlap_example-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(folder), str(_PACKAGE), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    for each in (str(folder), str(_PACKAGE)):
        monkeypatch.syspath_prepend(each)
