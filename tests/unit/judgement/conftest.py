"""Folders whose callables are judged."""

from pathlib import Path

import pytest


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hot.py").write_text(f"# {name}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path
