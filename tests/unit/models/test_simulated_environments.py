"""Environments against equations of motion solved another way, against gymnasium, and in every library."""

from __future__ import annotations

import math
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.environments.environment import (
    ACTIONS,
    EPISODES,
    OBSERVATION,
    OBSERVED,
    RETURNS,
    START,
    STEPS,
    Environment,
)
from fairlap.bench_models.environments.numpy_model import Implementation as InNumPy
from fairlap.bench_models.environments.reference import Implementation as Reference
from fairlap.models.draw import draw_inputs
from fairlap.models.names import workload_names
from fairlap.request.work import Precision

Array = npt.NDArray[Any]

ENVIRONMENTS = ("cartpole", "mountain_car", "pendulum")
OUTPUTS = (OBSERVATION, OBSERVED, RETURNS, EPISODES)


def spec_of(name: str) -> ModuleType:
    return import_module(f"fairlap.bench_models.{name}.spec")


def environment_of(name: str) -> Environment:
    found: Environment = spec_of(name).ENVIRONMENT
    return found


def drawn(name: str, batch: int = 8, seed: int = 0) -> dict[str, Array]:
    return dict(draw_inputs(environment_of(name).spec(), batch, seed))


def advanced(name: str, state: tuple[float, ...], action: float) -> tuple[list[float], float, bool]:
    arrays = tuple(np.array([each]) for each in state)
    found, reward, over = environment_of(name).advance(arrays, np.array([action]), np)
    return [float(each[0]) for each in found], float(np.ravel(reward)[0]), bool(np.ravel(over)[0])


def test_every_environment_is_found() -> None:
    modes = {name: import_module(f"fairlap.bench_models.{name}") for name in ENVIRONMENTS}
    assert set(modes) <= set(workload_names())


@pytest.mark.parametrize("action", [0, 1])
def test_a_step_of_the_cart_fulfils_the_equations_of_motion(action: int) -> None:
    """Lagrange's: forces on cart and pole together, and torques about the pivot of a rod without friction."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        state = tuple(rng.uniform(-1, 1, 4) * (2.0, 2.0, 0.2, 2.0))
        _, speed, angle, turning = state
        found, reward, _ = advanced("cartpole", state, action)
        mass_cart, mass_pole, half = 1.0, 0.1, 0.5
        left = np.array(
            [
                [mass_cart + mass_pole, mass_pole * half * math.cos(angle)],
                [math.cos(angle), 4 / 3 * half],
            ]
        )
        force = 10.0 if action else -10.0
        right = np.array([force + mass_pole * half * turning**2 * math.sin(angle), 9.8 * math.sin(angle)])
        moved, turned = np.linalg.solve(left, right)
        explicit = [state[0] + 0.02 * speed, speed + 0.02 * moved, angle + 0.02 * turning, turning + 0.02 * turned]
        assert found == pytest.approx(explicit, rel=1e-12)
        assert reward == 1.0


@pytest.mark.parametrize(("state", "over"), [((2.39, 1.0, 0, 0), True), ((2.3, 1.0, 0, 0), False)])
def test_an_episode_of_the_cart_ends_at_the_edge(state: tuple[float, ...], over: bool) -> None:
    assert advanced("cartpole", state, 1)[2] is over


def test_an_episode_of_the_cart_ends_where_the_pole_leans_12_degrees() -> None:
    just_below = math.radians(12) - 1e-9
    assert advanced("cartpole", (0, 0, just_below, 0), 1)[2] is False
    assert advanced("cartpole", (0, 0, just_below, 1e-6), 1)[2] is True


def test_a_pendulum_turns_by_the_torques_of_a_rod() -> None:
    """About its end a rod has a third of its mass times its length squared; its weight pulls at its middle."""
    for angle, turning, torque in ((0.3, 0.5, 1.5), (3.0, -2.0, -2.0), (-1.0, 0.0, 0.0)):
        (moved, faster), reward, over = advanced("pendulum", (angle, turning), torque)
        inertia = 1.0 * 1.0**2 / 3
        expected = turning + 0.05 * (1.0 * 10.0 * 0.5 * math.sin(angle) + torque) / inertia
        assert faster == pytest.approx(expected)
        assert moved == pytest.approx(angle + 0.05 * expected)
        off = math.remainder(angle, 2 * math.pi)
        assert reward == pytest.approx(-(off**2 + 0.1 * turning**2 + 0.001 * torque**2))
        assert over is False
    assert advanced("pendulum", (1.5, 7.9), 2.0)[0][1] == 8.0


def test_the_car_gets_out_of_the_valley_by_swinging_and_not_by_force() -> None:
    for swings in (True, False):
        state, over, steps = (-0.5, 0.0), False, 0
        while not over and steps < 200:
            found, reward, over = advanced("mountain_car", state, 0 if swings and state[1] < 0 else 2)
            state, steps = (found[0], found[1]), steps + 1
            assert reward == -1.0
        assert over is swings
    assert advanced("mountain_car", (-1.199, -0.05), 0)[0] == [-1.2, 0.0]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_step_after_an_episode_starts_over_without_a_reward(name: str) -> None:
    inputs, environment = drawn(name), environment_of(name)
    observations, rewards, ended = Reference(spec_of(name)).trajectories(inputs)
    first = np.stack(environment.observe(tuple(environment.starts(inputs[START].astype(np.float64))), np), -1)
    assert ended.any(axis=0).all()
    for step, one in zip(*np.nonzero(ended[:-1]), strict=True):
        assert observations[step + 1, one] == pytest.approx(first[one])
        assert rewards[step + 1, one] == 0
        assert not ended[step + 1, one]
    lengths = np.diff(np.nonzero(ended[:, 0])[0])
    assert (lengths - 1 <= environment.most_steps).all()
    assert len(observations) == STEPS


@pytest.mark.slow_but("pendulum")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasium_takes_the_same_trajectories(name: str) -> None:
    pytest.importorskip("gymnasium", reason="`make test` installs it and runs this")
    from fairlap.bench_models.environments.gymnasium_model import BATCHED
    from fairlap.bench_models.environments.gymnasium_model import Implementation as InGymnasium

    inputs, model = drawn(name), InGymnasium(spec_of(name))
    modes = [mode for mode in ("sync", BATCHED) if not model.why_not(mode)]
    assert modes == ["sync", BATCHED][: 1 + (name == "cartpole")]
    for mode in modes:
        environments = model.made(mode, 8)
        for inputs in (drawn(name, seed=1), drawn(name, seed=2)):  # the second call starts over
            agree(name, model.bind(environments, inputs)(), inputs)
        environments.close()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasium_draws_where_an_episode_starts_though_it_gets_the_given_start(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop by hand draws too: without, the time of CartPole was 3 % less."""
    pytest.importorskip("gymnasium", reason="`make test` installs it and runs this")
    from fairlap.bench_models.environments import gymnasium_model

    drawing = Drawing()
    monkeypatch.setattr(gymnasium_model, "_DRAWING", drawing)
    model, batch = gymnasium_model.Implementation(spec_of(name)), 4
    environments = model.made("sync", batch)
    *_, episodes = model.bind(environments, drawn(name, batch))()
    environments.close()
    ended = int(episodes.sum())
    assert ended >= batch
    assert ended <= drawing.times <= ended + batch  # those that end in the last step do not start again


class Drawing:
    """Counts the draws."""

    def __init__(self) -> None:
        self.times = 0

    def uniform(self, low: Any, high: Any, size: Any) -> None:
        assert np.all(np.asarray(low) < np.asarray(high))
        self.times += 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasium_takes_the_same_trajectories_in_processes(name: str) -> None:
    pytest.importorskip("gymnasium", reason="`make test-slow` installs it and runs this")
    from fairlap.bench_models.environments.gymnasium_model import Implementation as InGymnasium

    inputs, model = drawn(name, batch=2), InGymnasium(spec_of(name))
    environments = model.made("async", 2)
    agree(name, model.bind(environments, inputs)(), inputs)
    environments.close()


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_numpy_takes_the_same_trajectories(name: str, precision: Precision) -> None:
    inputs, model = drawn(name), InNumPy(spec_of(name))
    model.hold_in(precision)
    found = model.bind(inputs)()
    assert found[2].dtype == model.state_type
    agree(name, found, inputs, within=1e-6 if precision == "fp64" else 1e-3)


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_torch_takes_the_same_trajectories(name: str, precision: Precision) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    from fairlap.bench_models.environments.torch_model import Implementation as InTorch

    inputs, model = drawn(name), InTorch(spec_of(name))
    model.hold_in(precision)
    with torch.inference_mode():
        found = model.build({})(*(torch.tensor(inputs[each]) for each in (START, ACTIONS)))
    assert str(found[2].dtype) == f"torch.{model.state_type}"
    agree(name, [each.numpy() for each in found], inputs, within=1e-6 if precision == "fp64" else 1e-3)


def agree(name: str, found: Any, inputs: dict[str, Array], within: float = 1e-6) -> None:
    """Rewards and ends are the same, and observations to what float32 loses, relative to the largest."""
    expected = Reference(spec_of(name)).forward({}, inputs)
    for output, array in zip(OUTPUTS, found, strict=True):
        largest = max(1.0, float(np.abs(expected[output]).max()))
        assert np.abs(array - expected[output]).max() <= within * largest, output
    assert (found[3] == expected[EPISODES]).all()
