"""Steps that do not count, at the beginning of an epoch, leave nothing in the real frameworks.

Weights, what the optimizer keeps and the number of its steps are the same, bit for bit, and so is what follows.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.models.training.reference import STEP
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.names import contestant_named

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TRAININGS = {
    "sgd": Training(Sgd(lr=0.05, momentum=0.9, decay=0.0005)),
    "adamw": Training(AdamW(lr=0.01), Schedule("cosine", warmup=2, steps=6)),
}
KEPT = {"sgd": {"buffer"}, "adamw": {"mean", "square"}}


@pytest.mark.parametrize(("model", "training"), [("digits", "sgd"), ("digits", "adamw"), ("mnist", "sgd")])
@pytest.mark.parametrize("contestant", ["torch", "jax", "tensorflow:graph", "tensorflow"])
def test_the_state_after_a_warm_up_is_the_one_before_it(contestant: str, model: str, training: str) -> None:
    """``mnist`` also has statistics of its batches."""
    if not is_importable(framework_named(contestant_named(contestant).framework)):
        pytest.skip(f"{contestant} is not installed here; `make test` installs it and runs this")
    script, given = Path(__file__).parent / "warm_up_in_a_process.py", msgspec.json.encode(TRAININGS[training]).decode()
    command = [sys.executable, str(script), contestant, model, given]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout)
    assert found["differ"] == []
    still = set(found["arrays"]) - set(found["moved"])  # which would prove nothing
    assert still <= ({STEP} if training == "sgd" else set())  # some count no steps of which nothing depends
    assert {name.partition("/")[0] for name in found["arrays"]} == {"weight", STEP} | KEPT[training]
