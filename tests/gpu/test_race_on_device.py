"""Each framework that takes a GPU races on it: its answer is right, and its adapter's method times it there."""

from __future__ import annotations

import importlib.util
import os
from typing import Literal

import pytest

pytest.importorskip("msgspec", reason="races need msgspec")
pytest.importorskip("scipy", reason="verdicts need SciPy")

from fairlap.race.laps import Lap
from fairlap.race.naming import contestants_named
from fairlap.race.plan import Measuring, Work, draw_plan
from fairlap.race.race import Race

METHODS = {
    "torch": "device_span",
    "torch:compile": "device_span",
    "jax": "context_span",
    "tensorflow:graph": "context_span",
    "onnxruntime": "context_span",
}


def lap_of(name: str, model: str, mode: Literal["infer", "grad"] = "infer") -> Lap:
    if importlib.util.find_spec(name.partition(":")[0]) is None:
        pytest.skip(f"{name} is not here")
    plan = draw_plan(
        contestants_named(name),
        (Work(model, 8, mode),),
        blocks=1,
        conditions="as-found",
        threads=2,
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=1,
        measuring=Measuring(seconds=0.2),
        device="cuda:0",
    )
    race = Race(plan)
    race.run()
    (lap,) = race.laps
    return lap


def finished_lap_of(name: str, model: str, mode: Literal["infer", "grad"] = "infer") -> Lap:
    lap = lap_of(name, model, mode)
    if lap.outcome == "unsupported":
        pytest.skip(lap.message)  # a build without CUDA
    assert lap.outcome == "finished", lap.message
    return lap


@pytest.mark.parametrize("model", ["mlp", "convnet"])
@pytest.mark.parametrize("name", METHODS)
def test_a_model_runs_right_on_the_device_and_is_timed_there(name: str, model: str) -> None:
    lap = finished_lap_of(name, model)
    assert max(error.relative for error in lap.errors) < 1e-4  # TF32 would leave 1e-3
    assert METHODS[name] in {figure.method for figure in lap.figures.values()}


@pytest.mark.parametrize("name", [name for name in METHODS if name != "onnxruntime"])
def test_gradients_are_right_on_the_device(name: str) -> None:
    finished_lap_of(name, "mlp", "grad")
