"""Each test of a source starts with an empty cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.models.sources import bundle


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bundle, "_implementations", {})
