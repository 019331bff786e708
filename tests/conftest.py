"""Set-up that every test relies on."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest
from example_installed import install_example

HEAVY_ENVIRONMENTS = "FAIRLAP_TEST_ENVIRONMENTS"


_scratch = tempfile.TemporaryDirectory(prefix="fairlap-tests-")


def pytest_configure() -> None:
    """Restore the signals that a background process or nohup ignores, since every program that a test starts would
    inherit that, and store runs in a temporary file instead of the user's store.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    os.environ["FAIRLAP_STORE"] = str(Path(_scratch.name) / "runs.sqlite")


def pytest_unconfigure() -> None:
    _scratch.cleanup()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get(HEAVY_ENVIRONMENTS) == "1":
        return
    skipped = pytest.mark.skip(reason=f"creates environments of hundreds of megabytes; set {HEAVY_ENVIRONMENTS}=1")
    for item in items:
        if item.get_closest_marker("heavy_environments"):
            item.add_marker(skipped)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example package is installed, and weights and inputs are written for this test alone."""
    install_example(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
