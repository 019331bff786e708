"""MLPerf's LoadGen ends VALID in every scenario against real frameworks, whose answers it logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.request.fields.load import Scenario

pytestmark = [pytest.mark.sanitized, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).with_name("loadgen_in_a_process.py")
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def found_by(name: str, variant: str = "", **asked: Any) -> dict[str, Any]:
    pytest.importorskip("mlperf_loadgen", reason="`make test` installs it and runs this")
    framework = framework_named(name)
    if not is_importable(framework):
        pytest.skip(f"{framework.module} is not installed here")
    wanted = framework.environment_for(Settings(1, variant))
    command = [sys.executable, str(PROGRAM), json.dumps({"framework": name, "variant": variant, **asked})]
    done = subprocess.run(command, env={**os.environ, **wanted}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def require_valid(found: dict[str, Any]) -> None:
    why = {name: result["why_invalid"] for name, result in found["results"].items() if not result["valid"]}
    assert why == {}
    assert found["wrong"] == []
    assert set(found["items"]) == {0, 1, 2, 3}
    assert found["while_timed"]
    assert max(found["while_timed"]) < 1e-5


def test_a_framework_ends_valid_in_all_scenarios() -> None:
    require_valid(found_by("onnxruntime", model="mlp", scenarios=SCENARIOS, least_s=0.2))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "variant"),
    [("torch", ""), ("tensorflow", "graph"), ("jax", ""), ("onnxruntime", ""), ("openvino", ""), ("litert", "")],
)
def test_mobilenet_ends_valid_in_all_scenarios(name: str, variant: str) -> None:
    found = found_by(name, variant, model="mobilenet_v2", scenarios=SCENARIOS, least_s=2.0, batch=4)
    require_valid(found)
    assert found["results"]["multi-stream"]["largest_group"] == 4


@pytest.mark.thorough
def test_serving_threads_have_the_precision_of_the_thread_that_prepared_the_contestant() -> None:
    found = found_by("torch", model="mlp", precision="autocast", scenarios=[], least_s=0.0)
    assert found["unlike_alone"] == 0.0
