"""Races of agents: what is planned and refused, what they are ranked by, and updates that are not the reference's."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.bench_models.agents.algorithm import AFTER, GRADIENT, LOSSES, NOISE, NORMS, algorithm_of
from fairlap.bench_models.cartpole.spec import ENVIRONMENT
from fairlap.errors import InvalidRequest
from fairlap.models.arrays import Arrays
from fairlap.models.modes import AGENTS
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.run import Run
from fairlap.render.plan_command import command_of
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Share
from fairlap.request.work import Mode, Work
from fairlap.results.results import Results, results_of
from fairlap.scenarios.agents.agent_messages import AgentTimes
from fairlap.scenarios.agents.race.agent_run import AgentRun
from fairlap.scenarios.agents.scenario import LearningToAct
from fairlap.scenarios.calls.calls_scenario import TIME_OF_A_CALL, Calls
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.verdict import interquartile_mean
from runs_for_rows import a_process

STEPS = (10240, 20480, 30720, 40960, 51200, 10240, 20480, 10240, 30720, 20480)


def asked(**options: Any) -> RaceRequest:
    usual: dict[str, Any] = {
        "models": ("cartpole",),
        "contestants": Contestants("torch,jax"),
        "mode": "ppo",
        "to_score": Share(0.95),
        "blocks": 10,
        "seed": 1,
        "threads": 1,
    }
    return RaceRequest(**{**usual, **options})


def test_a_race_to_a_score_has_ten_seeds_and_one_of_updates_is_of_calls() -> None:
    plan = plan_of(asked(epochs=20))
    [work], [scenario] = plan.works, plan.scenarios
    assert (work.precision, work.batch, plan.to_score, plan.most_epochs) == ("fp32", 8, 0.95, 20)
    assert isinstance(scenario, LearningToAct)
    assert LearningToAct.data_seeds == tuple(range(10))
    assert {*plan.data_seeds} <= {*range(10)}
    of_calls = plan_of(asked(to_score=None, mode=("ppo", "dqn"))).scenarios
    assert [type(each) for each in of_calls] == [Calls]
    [scenario] = plan_of(asked(mode="dqn")).scenarios
    assert isinstance(scenario, LearningToAct)


def test_the_command_asks_for_the_same_again() -> None:
    words = command_of(plan_of(asked(epochs=7)))
    assert "--mode ppo" in words
    assert "--to-score 0.95" in words
    assert "--epochs 7" in words


@pytest.mark.parametrize(
    "options",
    [
        {"models": ("pendulum",)},
        {"models": ("mlp",)},
        {"mode": ("ppo", "train")},
        {"precision": "fp64"},
        {"device": "cuda:0"},
        {"optimizer": "sgd:lr=0.1"},
        {"train_on": "digits"},
        {"count_evaluation": True},
        {"epochs": 0},
        {"epochs": 3, "to_score": None},
    ],
)
def test_what_is_no_agent_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        plan_of(asked(**options))


def results(steps: tuple[float, ...] = STEPS) -> Results:
    """Of torch, and of JAX which takes a fifth of the time for the same steps; infinite steps never come to it."""
    plan = plan_of(asked())
    [work], processes = plan.works, []
    for block, taken in zip(plan.blocks, steps, strict=True):
        for name, second_for in (("torch", 4000), ("jax", 20000)):
            process = a_process(block.number, name, 1e7, work)
            ends = math.isfinite(taken)
            last = Evaluation(int(taken if ends else 10**5), (taken if ends else 1e5) / second_for, 0.97 * ends, None)
            process.learning = LearningCurve(0.95, (Evaluation(1, 0.001, 0.2, None), last), steps_are_calls=False)
            process.agent = AgentTimes(0.1, 0.2, 0.3).with_more(AgentTimes(0.4, 0.5, 0.6))
            processes.append(process)
    return results_of(Run(plan, processes, {}, {"whole": 10.0}, began_at="2026-01-02T03:04:05+00:00"))


def test_agents_are_ranked_by_the_time_to_the_score_and_seeds_have_an_interquartile_mean() -> None:
    found = results()
    rows = {row.contestant: row for row in found.rows}
    for name, second_for in (("torch", 4000), ("jax", 20000)):
        row, (value, low, high) = rows[name], interquartile_mean(STEPS)
        assert row.judged_by == "time to a score of 95 %"
        assert row.time_to_score_s is not None
        assert row.time_to_score_s.value == pytest.approx(np.median(STEPS) / second_for, rel=0.2)
        steps, seconds = (row.scenario_figures[each] for each in ("iqm_steps_to_score", "iqm_time_to_score_s"))
        assert (steps.value, steps.low, steps.high) == (value, low, high)
        assert seconds.value == pytest.approx(value / second_for)
        parts = [row.scenario_figures[each].value for each in ("environment_s", "inference_s", "learning_s")]
        assert parts == pytest.approx([0.5, 0.7, 0.9])
        assert row.reached_share == 1
    [comparison] = found.work_results[0].comparisons
    assert comparison.verdict.value == "slower"
    assert [rows[name].place for name in ("jax", "torch")] == ["1", "2"]
    assert "W_STEPS_DIFFER" not in text_of(found)


def test_agents_that_did_not_always_come_to_the_score_have_a_median_by_kaplan_and_meier() -> None:
    rows = results((*STEPS[:8], math.inf, math.inf)).rows
    for row in rows:
        assert row.judged_by == TIME_OF_A_CALL  # fewer than two always came to it
        assert row.reached_share == 0.8
        assert row.time_to_score_s is not None
        assert row.scenario_figures["iqm_steps_to_score"].value == pytest.approx(np.mean(sorted(STEPS[:8])[2:8]))
        assert row.scenario_figures["iqm_steps_to_score"].high is None
    assert all("iqm_steps_to_score" in row.scenario_absent for row in results((*STEPS[:7], *[math.inf] * 3)).rows)


@pytest.fixture(scope="module")
def materials(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield materials_for(Work("cartpole", 2, "ppo"), 0)


@pytest.mark.parametrize("mode", AGENTS)
def test_a_folder_has_all_of_an_algorithm(mode: Mode) -> None:
    algorithm = algorithm_of(mode)
    assert len(algorithm.drawn(ENVIRONMENT, 2, (1,), 0)[NOISE]) == algorithm.steps
    assert ENVIRONMENT.spec().in_mode(mode).outputs[0].shape == (algorithm.parts,)
    for file in ("reference", "jax_model", "torch_model"):
        assert find_spec(f"fairlap.bench_models.agents.{mode}.{file}") is not None


def wrong(work: Materials, got: Arrays, which: str = "inputs") -> set[str]:
    return {each.what for each in mode_side("ppo").errors(work, got, which, "before") if not each.right}


def test_updates_are_compared_part_by_part(materials: Materials) -> None:
    right = {name: np.array(each, np.float32) for name, each in materials.reference("inputs").items()}
    assert wrong(materials, right) == set()
    assert {LOSSES, NORMS} <= wrong(materials, right, "changed")
    before = materials.weights["critic_1"]
    for name, other in (
        (LOSSES, right[LOSSES] * np.where(np.arange(16) == 15, 1.05, 1)),
        (NORMS, right[NORMS] * np.where(np.arange(16) == 9, 1.05, 1)),
        (f"{GRADIENT}actor_0", right[f"{GRADIENT}actor_0"] * 1.01),
        (f"{AFTER}critic_1", before + 0.95 * (right[f"{AFTER}critic_1"] - before)),
    ):
        assert wrong(materials, {**right, name: other.astype(np.float32)}) == {name}
    del right[LOSSES]
    with pytest.raises(OtherWork):
        wrong(materials, right)


def test_a_first_iteration_that_learnt_less_is_found(materials: Materials, tmp_path: Path) -> None:
    plan = plan_of(asked(batch=2))
    run = AgentRun(plan, plan.blocks[0], materials, tmp_path, plan.contestants[0])
    given = materials.weights
    lazy = {name: np.array(each) for name, each in given.items()}
    errors = run._errors(lazy)
    assert errors
    assert not any(each.right for each in errors)


def test_an_agent_that_has_the_score_before_it_learns_has_a_warning(materials: Materials, tmp_path: Path) -> None:
    def at_start(to_score: float) -> list[str]:
        plan = plan_of(asked(batch=2, to_score=Share(to_score)))
        run = AgentRun(plan, plan.blocks[0], materials, tmp_path, plan.contestants[0])
        return [each.code for each in run.notices_of_start()]

    plan = plan_of(asked(batch=2))
    score = AgentRun(plan, plan.blocks[0], materials, tmp_path, plan.contestants[0])._score(materials.weights)
    assert 0 < score < 0.9
    assert at_start(score) == ["W_SCORE_AT_START"]
    assert at_start(score + 0.01) == []
