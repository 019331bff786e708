"""Each test of a source starts with an empty cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fairlap.models.sources import bundle
from learning_sources import SUPPORT, OpenedHere, opened_here


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bundle, "_implementations", {})


@pytest.fixture(scope="session")
def opened_networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, OpenedHere]]:
    """Networks of one's own, opened once with their loss."""
    for package in ("torch", "onnxscript"):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.syspath_prepend(str(Path(SUPPORT)))
        names = ("convolutional", "transformer", "normalised")
        yield {name: opened_here(f"own_nets:{name}", "cross_entropy", tmp_path_factory.mktemp(name)) for name in names}
