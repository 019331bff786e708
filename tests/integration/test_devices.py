"""A device that is not there is refused by every framework in words of its own, and nobody falls back to the CPU."""

from __future__ import annotations

import os
import sys

import pytest
from fairlap.race.plan import Measuring, draw_plan
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Work

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc"),
]

REFUSALS = {
    "torch": "torch sees ",
    "jax": "jax sees ",
    "tensorflow": "tensorflow sees ",
    "onnxruntime": "onnxruntime ",
    "openvino": "openvino runs on cpu",
}


def test_no_framework_falls_back_to_the_cpu() -> None:
    plan = draw_plan(
        Contestants(",".join(REFUSALS)),
        (Work("mlp", 1),),
        blocks=1,
        conditions="as-found",
        threads=1,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=1,
        measuring=Measuring(seconds=0.05),
        device="cuda:63",
    )
    race = Race(plan)
    race.run()
    for process in race.processes:
        assert process.outcome == "unsupported", process.details or process.outcome
        assert REFUSALS[process.contestant] in process.message
        assert process.timings == {}
