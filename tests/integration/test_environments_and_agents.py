"""Races of simulations and of agents, and simulators that do other work are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fairlap
import pytest
from command_line import output
from installed_package import install_frameworks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SOLVED_WITHIN_STEPS = {"ppo": 100_000, "dqn": 50_000}
"""After which RL Baselines3 Zoo's agents have a mean return of 500 in CartPole-v1, by the best action each time."""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def raced(model: str, on: tuple[str, ...], mode: Any, **options: Any) -> Any:
    usual: dict[str, Any] = {"blocks": 1, "seconds": 0.05, "threads": 1, "seed": 1}
    return fairlap.compare(model, on=list(on), mode=mode, **{**usual, **options})


@pytest.mark.parametrize("model", ["cartpole", "mountain_car", "pendulum"])
def test_numpy_torch_and_jax_take_the_same_trajectories(model: str) -> None:
    for library in ("torch", "jax"):
        pytest.importorskip(library, reason="`make test-slow` installs it and runs this")
    rows = raced(model, ("numpy", "torch", "jax"), "simulate", precision=("fp64", "fp32")).rows
    assert {(row.outcome, row.message) for row in rows} == {("finished", "")}
    assert len(rows) == 6
    assert all(row.judged_by == "environment steps per second" and row.judged.value > 1e4 for row in rows)


@pytest.mark.parametrize(
    ("on", "module"), [(("gymnasium", "gymnasium:vectorized", "gymnasium:async"), "gymnasium"), (("gymnax",), "gymnax")]
)
def test_libraries_of_environments_take_them_too(on: tuple[str, ...], module: str) -> None:
    pytest.importorskip(module, reason="`make test-slow` installs it and runs this")
    rows = raced("cartpole", on, "simulate", batch=4).rows
    assert {(row.outcome, row.message) for row in rows} == {("finished", "")}


def test_what_gymnasium_lacks_is_said() -> None:
    pytest.importorskip("gymnasium", reason="`make test-slow` installs it and runs this")
    [row] = raced("pendulum", ("gymnasium:vectorized",), "simulate", batch=4).rows
    assert row.outcome == "unsupported"


def test_a_simulator_that_does_other_work_is_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_frameworks(tmp_path / "package", monkeypatch, {"wrong": "wrong_simulator:WrongSimulator"})
    variants = ("half-of-the-steps", "same-step", "kept", "other-physics")
    rows = raced("cartpole", ("wrong", *(f"wrong:{each}" for each in variants)), "simulate").rows
    outcomes = {row.contestant: (row.outcome, row.code) for row in rows}
    assert outcomes.pop("wrong") == ("finished", "")
    assert outcomes.pop("wrong:kept") == ("disqualified", "E_STALE_ANSWER")
    assert set(outcomes.values()) == {("disqualified", "E_OUTPUT")}


def test_the_picture_has_the_rate_at_each_batch(tmp_path: Path) -> None:
    words = ("cartpole", "--on", "numpy", "--mode", "simulate", "--batch", "1,16", "--blocks", "1", "--seconds", "0.05")
    output("compare", *words, "-o", tmp_path / "steps.json")
    output("report", tmp_path / "steps.json", "--charts", tmp_path / "pictures")
    assert any("judged_by_batch" in each.name for each in (tmp_path / "pictures").iterdir())


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("mode", ["ppo", "dqn"])
def test_an_agent_solves_the_cart_within_the_published_number_of_steps(mode: str, library: str) -> None:
    pytest.importorskip(library, reason="`make test-slow` installs it and runs this")
    [row] = raced("cartpole", (library,), mode, to_score="95%", epochs=120).rows
    assert (row.outcome, row.message) == ("finished", "")
    assert row.reached_share == 1
    assert row.steps_to_score <= SOLVED_WITHIN_STEPS[mode]
    figures = {name: found.value for name, found in row.scenario_figures.items()}
    assert figures["iqm_steps_to_score"] == row.steps_to_score
    parts = sum(figures[name] for name in ("environment_s", "inference_s", "learning_s"))
    assert 0.5 * row.time_to_score_s.value < parts < 1.1 * row.time_to_score_s.value
