"""Every framework that answers token by token gives the logits of the reference, with its cache kept in itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.registry import framework_named
from fairlap.request.names import contestant_named
from framework_python import skip_unless_available
from machine_marks import needs_proc
from thorough import thorough_where
from workloads_of_models import workload_of

PROGRAM = Path(__file__).with_name("adapter_in_a_process.py")
MODEL, ENCODER_DECODER = "characters_generate", "t5_generate:tiny"
CONTESTANTS = (
    "torch",
    "torch:compile",
    "jax",
    "tensorflow",
    "tensorflow:graph",
    "tensorflow:xla",
    "onnxruntime",
    "openvino",
)
SLOW = ("torch:compile", "tensorflow", "tensorflow:xla")

pytestmark = needs_proc


def found_by(contestant: str, precision: str = "fp32", model: str = MODEL) -> dict[str, Any]:
    skip_unless_available(contestant)
    name = contestant_named(contestant)
    wanted = framework_named(name.framework).environment_for(Settings(1, name.variant))
    asked = {"framework": name.framework, "variant": name.variant, "mode": "infer", "precision": precision}
    command = [sys.executable, str(PROGRAM), json.dumps([{"model": model, "threads": 1, **asked}])]
    done = subprocess.run(command, env={**os.environ, **wanted}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    [found] = json.loads(done.stdout)
    return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL, ENCODER_DECODER])
@pytest.mark.parametrize("contestant", thorough_where(SLOW.__contains__, CONTESTANTS))
def test_each_step_of_an_answer_is_that_of_the_reference(contestant: str, model: str) -> None:
    found = found_by(contestant, model=model)
    assert found["wrong"] == []
    assert found["weights"] == "equal"
    assert found["changed"], "another prompt must change the answer"
    assert found["again"], "an answer to another prompt must leave nothing behind"
    assert found["in_force"]["precision"] == "fp32"


@pytest.mark.slow
@pytest.mark.parametrize("contestant", ["torch", "jax"])
def test_an_answer_in_bfloat16_is_within_its_tolerance(contestant: str) -> None:
    found = found_by(contestant, "bf16")
    assert found["wrong"] == []
    assert found["in_force"]["precision"] == "bf16"


@pytest.mark.parametrize("contestant", ["litert", "executorch", "tinygrad", "paddle", "mxnet"])
def test_a_framework_that_keeps_no_cache_is_refused_before_it_is_imported(
    contestant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, framework_named(contestant).module, raising=False)
    with pytest.raises(Unsupported, match="cache"):
        framework_named(contestant)().prepare(workload_of(MODEL), Settings(1), lambda _: nullcontext())
    assert framework_named(contestant).module not in sys.modules


@pytest.mark.slow
def test_a_race_shows_when_tokens_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unless_available("onnxruntime")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    race = ("compare", MODEL, "--on", "onnxruntime", "--blocks", 1, "--seconds", 0.1, "--threads", 1, "--json")
    done = invoke(*race)
    assert done.exit_code == 0, done.output
    [row] = json.loads(done.stdout)["rows"]
    assert row["outcome"] == "finished"
    first_ns, each_ns = row["time_to_first_token_ns"]["value"], row["time_per_output_token_ns"]["value"]
    whole_ns = row["latency_p50_ns"]["value"]
    assert 0 < first_ns < whole_ns
    assert whole_ns / 3 < first_ns + 15 * each_ns < 1.5 * whole_ns  # medians of parts that other processes disturb
    assert row["tokens_per_s"]["value"] == pytest.approx(16e9 / whole_ns)


def test_training_through_an_answer_is_refused() -> None:
    assert invoke("compare", MODEL, "--on", "torch", "--mode", "grad").exit_code != 0
