"""The real frameworks, fed: every pipeline does the same job, and what comes out belongs to what went in."""

from __future__ import annotations

import functools

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.race.laps import Lap
from fairlap.race.naming import contestant_named, contestants_named
from fairlap.race.plan import Measuring, Work, draw_plan
from fairlap.race.race import Race

pytestmark = [pytest.mark.sanitized, pytest.mark.timeout(600)]

NATIVE = (
    *("torch", "torch:compile", "jax", "tensorflow", "tensorflow:graph", "tensorflow:xla"),
    *("onnxruntime", "openvino"),
)
PEERS = ("torch:feed=dataloader", "torch:feed=dataloader:workers=2", "tensorflow:feed=tfdata")
CANNOT = ("litert", "torch:slowdown=2%")


def here(name: str) -> bool:
    return is_importable(framework_named(contestant_named(name).framework))


@functools.cache
def race(model: str, contestants: tuple[str, ...]) -> dict[str, Lap]:
    plan = draw_plan(
        contestants_named(",".join(name for name in contestants if here(name))),
        (Work(model, 4),),
        blocks=1,
        conditions="as-found",
        threads=1,
        available_cores=(0,),
        seed=1,
        measuring=Measuring(seconds=0.1),
        data="synthetic",
    )
    running = Race(plan)
    running.run()
    return {lap.contestant: lap for lap in running.laps}


@pytest.mark.parametrize("name", [*NATIVE, *PEERS])
def test_a_fed_framework_answers_right_for_what_it_was_fed(name: str) -> None:
    if not here(name):
        pytest.skip(f"{name} is not installed here")
    lap = race("mlp", (*NATIVE, *PEERS, *CANNOT))[name]
    assert lap.outcome == "finished", lap.message
    assert {"fed batch 0", "fed batch 1", "fed, after"} <= {error.when for error in lap.errors}
    assert all(error.right for error in lap.errors)
    assert lap.feeding["items"] > 0
    assert ("staging_ns" in lap.feeding) == (name in NATIVE)


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_be_fed_says_so(name: str) -> None:
    if not here(name):
        pytest.skip(f"{name} is not installed here")
    lap = race("mlp", (*NATIVE, *PEERS, *CANNOT))[name]
    assert lap.outcome == "unsupported"
    assert "cannot be fed" in lap.message
