"""Races of simulations: what is planned and refused, what they are ranked by, and what is compared in fp32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.bench_models.environments.environment import EPISODES, OBSERVATION, OBSERVED, RETURNS, STEPS
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Settings, Unsupported, refuse_what_is_unknown
from fairlap.frameworks.registry import framework_named
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.run import Run
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Precision, Work
from fairlap.results.results import results_of
from fairlap.scenarios.simulating.scenario import BY, Simulating
from runs_for_rows import a_process

BATCH = 64


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))


def asked(**options: Any) -> RaceRequest:
    usual: dict[str, Any] = {
        "models": ("cartpole",),
        "contestants": Contestants("numpy,torch"),
        "mode": "simulate",
        "blocks": 8,
        "seed": 1,
        "threads": 1,
    }
    return RaceRequest(**{**usual, **options})


def materials(name: str, precision: Precision = "fp64", seed: int = 0) -> Materials:
    return materials_for(Work(name, BATCH, "simulate", precision), seed)


def test_environments_race_in_fp64_unless_another_precision_is_asked_for() -> None:
    plan = plan_of(asked(batch=(1, 64)))
    assert [(work.precision, work.batch) for work in plan.works] == [("fp64", 1), ("fp64", 64)]
    assert all(isinstance(each, Simulating) for each in plan.scenarios)
    assert [work.precision for work in plan_of(asked(precision="fp32")).works] == ["fp32"]


@pytest.mark.parametrize(
    "options",
    [
        {"models": ("mlp",)},
        {"mode": ("simulate", "infer")},
        {"precision": "bf16"},
        {"data": "synthetic"},
        {"device": "cuda:0"},
        {"loss": "mse"},
    ],
)
def test_what_is_no_environment_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        plan_of(asked(**options))


@pytest.mark.parametrize(
    ("name", "variant", "precision"), [("torch", "compile", "fp64"), ("gymnasium", "", "fp32"), ("scipy", "", "fp64")]
)
def test_a_framework_that_has_no_such_simulation_says_so(name: str, variant: str, precision: Precision) -> None:
    work = Workload(materials("cartpole").spec, "fairlap.bench_models.cartpole", 1, "simulate", precision, {}, {})
    with pytest.raises(Unsupported):
        refuse_what_is_unknown(framework_named(name), work, Settings(1, variant))


def a_run(ns: dict[str, float]) -> Run:
    plan = plan_of(asked(contestants=Contestants(",".join(ns))))
    [work] = plan.works
    processes = [a_process(block.number, name, each, work) for block in plan.blocks for name, each in ns.items()]
    return Run(plan, processes, {}, {"whole": 10.0}, began_at="2026-01-02T03:04:05+00:00")


def test_contestants_are_ranked_by_the_steps_of_all_environments_in_a_second() -> None:
    results = results_of(a_run({"torch": 64e6, "numpy": 16e6}))
    rows = {row.contestant: row for row in results.rows}
    assert rows["torch"].judged_by == BY
    for name, ns in (("torch", 64e6), ("numpy", 16e6)):
        judged = rows[name].judged
        assert judged is not None
        assert judged.value == pytest.approx(STEPS * BATCH / (ns / 1e9), rel=0.01)
    assert [row.place for row in (rows["numpy"], rows["torch"])] == ["1", "2"]
    assert f"{STEPS} steps" in text_of(results)


@pytest.mark.parametrize("name", ["cartpole", "mountain_car", "pendulum"])
@pytest.mark.parametrize("seed", Simulating.data_seeds)
def test_most_trajectories_can_be_compared_in_fp32(name: str, seed: int) -> None:
    found = materials(name, "fp32", seed).reference("inputs")["compared"]
    assert found.mean() >= 0.5


def test_all_trajectories_are_compared_in_fp64_and_fewer_of_the_same_inputs_in_fp32() -> None:
    assert materials("pendulum").reference("changed")["compared"].all()
    assert not materials("pendulum", "fp32").reference("changed")["compared"].all()
    assert materials("pendulum").reference("changed")["compared"].all()


def test_an_environment_whose_trajectory_amplifies_rounding_is_not_compared() -> None:
    work = materials("pendulum", "fp32")
    compared = work.reference("inputs")["compared"] > 0
    for one, found in ((np.argmin(compared), set()), (np.argmax(compared), {RETURNS})):
        got = right(work)
        got[RETURNS][one] -= 70
        assert wrong(work, got) == found


def right(work: Materials) -> dict[str, np.ndarray]:
    reference = work.reference("inputs")
    return {name: np.array(reference[name], np.float32) for name in (OBSERVATION, OBSERVED, RETURNS, EPISODES)}


def wrong(work: Materials, got: Arrays) -> set[str]:
    found = mode_side("simulate").errors(work, got, "inputs", "before")
    return {each.what for each in found if not each.right}


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_the_right_answer_is_right_and_that_to_other_inputs_is_wrong(precision: Precision) -> None:
    work = materials("pendulum", precision)
    assert wrong(work, right(work)) == set()
    others = work.reference("changed")
    assert {OBSERVATION, OBSERVED, RETURNS} <= wrong(work, {name: np.array(others[name]) for name in right(work)})


@pytest.mark.parametrize(("name", "by"), [(EPISODES, 1), (RETURNS, 1), (OBSERVED, 0.05), (OBSERVATION, 1e-3)])
def test_a_step_too_few_is_found(name: str, by: float) -> None:
    work = materials("cartpole")
    got = right(work)
    got[name].reshape(-1)[3] += by
    assert wrong(work, got) == {name}


def test_an_answer_without_an_output_is_other_work() -> None:
    work = materials("cartpole")
    got = right(work)
    del got[RETURNS]
    with pytest.raises(OtherWork) as error:
        wrong(work, got)
    assert error.value.code == "E_OUTPUT"
