"""The quick part of each suite that comes with fairlap runs here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import here
from fairlap.request.published_suites import published_suites
from machine_marks import needs

pytestmark = pytest.mark.slow

needs("torch", "onnxruntime", "jax")


@pytest.mark.parametrize("name", sorted(published_suites()))
def test_the_quick_part_of_a_suite_runs(tmp_path: Path, name: str) -> None:
    if name == "mlperf-inference":
        pytest.importorskip("mlperf_loadgen", reason="`make test` installs it where there is a wheel")
    done = here("suite", "run", name, "--tag", "quick", "--no-store", "--quiet", "-o", tmp_path / "suite.json")
    assert done.returncode == 0, done.stderr
    [race] = json.loads((tmp_path / "suite.json").read_text())["races"]
    assert race["state"] == "finished"
    shown = here("suite", "show", tmp_path / "suite.json")
    assert (shown.returncode, name in shown.stdout or race["name"] in shown.stdout) == (0, True)
