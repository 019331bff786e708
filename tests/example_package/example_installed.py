"""The example package made importable, as pip would: its modules and its entry points on the path."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from installed_package import install_package

_PACKAGE = Path(__file__).parent


def install_example(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((_PACKAGE / "pyproject.toml").read_text())["project"]
    install_package(folder, monkeypatch, project["name"], project["entry-points"], _PACKAGE)
