"""Real frameworks serve requests from several threads and in batches, and every answer that is looked at is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.race.planning.plan import Measuring
from fairlap.request.fields.load import Load
from fairlap.request.work import Work
from fairlap.scenarios.load.race.load_run import WHEN
from framework_python import skip_unless_available
from machine_marks import needs_proc
from small_races import run_race, small_plan

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600), needs_proc]


@pytest.mark.parametrize("model", ["mlp", "convnet"])
@pytest.mark.parametrize(
    "contestant", ["torch", "torch:compile", "onnxruntime", "tensorflow", "tensorflow:graph", "jax", "openvino"]
)
def test_two_workers_and_batches_of_a_framework_answer_rightly(
    contestant: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_unless_available(contestant)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    plan = small_plan(
        contestant,
        Work(model, 1, load=Load(0.9, 0.5, workers=2, largest_batch=4, trial_s=0.5)),
        measuring=Measuring(seconds=0.05),
    )
    [process] = run_race(plan).processes
    assert process.outcome == "finished", process.message
    found = process.load
    assert found is not None
    assert found.largest_rate_per_s
    assert sum(trial.checked for trial in found.trials) > 10
    errors = [error for error in process.errors if error.when == WHEN]
    assert errors
    assert all(error.right for error in errors)
    assert max(trial.mean_batch for trial in found.trials) > 1
