"""The real frameworks run on each number of threads that a race names, and are checked to do so."""

from __future__ import annotations

import os

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.race.planning.plan import Measuring
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Mode, Work
from small_races import run_race, small_plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two threads need two cores")
@pytest.mark.parametrize("contestant", ["torch", "jax", "tensorflow", "onnxruntime"])
def test_every_work_of_a_race_has_its_own_number_of_threads_in_force(contestant: str) -> None:
    if not is_importable(framework_named(contestant)):
        pytest.skip(f"{contestant} is not installed")
    training = None if contestant == "onnxruntime" else Training(Sgd(lr=0.01))
    mode: Mode = "infer" if training is None else "train"
    plan = small_plan(
        contestant,
        *(Work("mlp", 4, mode, training=training, scale=Scale(threads)) for threads in (1, 2)),
        conditions="controlled",
        threads=2,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        measuring=Measuring(seconds=0.05),
    )
    race = run_race(plan)
    scales = {work.id: work.scale for work in plan.works}
    found = {scales[process.work_id]: process for process in race.processes}
    assert [process.outcome for process in race.processes] == ["finished"] * 2, [p.message for p in race.processes]
    for threads in (1, 2):
        in_force = found[Scale(threads)].in_force
        assert str(threads) in (in_force.get("threads"), in_force.get("threads_asked"))
        assert len(found[Scale(threads)].cores) == threads
