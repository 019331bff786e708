"""The agents: PPO against its formulas by hand, and the same updates of every algorithm in every library."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.agents.algorithm import (
    ACTIONS,
    AFTER,
    ENDED,
    NOISE,
    OBSERVATIONS,
    REWARDS,
    STARTS,
    algorithm_of,
)
from fairlap.bench_models.agents.ppo import algorithm as ppo
from fairlap.bench_models.agents.ppo.algorithm import ALGORITHM, chosen
from fairlap.bench_models.agents.ppo.reference import parts_of
from fairlap.bench_models.agents.rollouts import Environments, mean_return
from fairlap.bench_models.cartpole.spec import ENVIRONMENT, SPEC
from fairlap.models.checks.differentiation import gradients
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.modes import AGENTS
from fairlap.request.work import Mode

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
pytestmark = pytest.mark.usefixtures("one_torch_thread")

Array = npt.NDArray[Any]

BATCH = 2


@cache
def inputs(mode: Any = "ppo") -> dict[str, Array]:
    return dict(draw_inputs(SPEC.in_mode(mode), BATCH, seed=0))


@cache
def weights(mode: Any = "ppo") -> dict[str, Array]:
    return dict(draw_weights(SPEC.in_mode(mode), seed=0))


@cache
def expected(mode: Any) -> dict[str, Array]:
    found: dict[str, Array] = agent(mode, "reference").forward(weights(mode), inputs(mode))
    return found


def agent(mode: str, file: str) -> Any:
    return import_module(f"fairlap.bench_models.agents.{mode}.{file}").Implementation(ENVIRONMENT)


def in_float64(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: each.astype(np.float64) if each.dtype.kind == "f" else each for name, each in arrays.items()}


def test_weights_are_those_of_the_mode_alone() -> None:
    assert not SPEC.weights
    for mode, size in (("ppo", 2 * (4 * 64 + 64 + 64 * 64 + 64) + 64 * 2 + 2 + 64 + 1), ("dqn", 4610)):
        in_mode = SPEC.in_mode(mode)  # type: ignore[arg-type]
        assert {weight.name for weight in in_mode.weights} == set(weights(mode))
        assert in_mode.in_mode("simulate") == in_mode
        assert sum(each.size for each in weights(mode).values()) == size


def test_advantages_are_the_discounted_sum_of_surprises() -> None:
    """By the definition: the sum over later steps of the same episode, each weighted by its distance."""
    rng = np.random.default_rng(0)
    values, rewards, ended = rng.normal(size=(7, 3)), rng.normal(size=(6, 3)), rng.integers(0, 2, (6, 3))
    found = ppo.advantages_of(values, rewards, ended)
    for one in range(3):
        for step in range(6):
            total, weight = 0.0, 1.0
            for later in range(step, 6):
                after = 0.0 if ended[later, one] else values[later + 1, one]
                total += weight * (rewards[later, one] + 0.99 * after - values[later, one])
                if ended[later, one]:
                    break
                weight *= 0.99 * 0.95
            assert found[step, one] == pytest.approx(total)


def test_the_loss_is_the_published_one() -> None:
    """Element by element, in plain Python, for the parts that Schulman and others name."""
    held, part = in_float64(weights()), a_part()
    gained, entropy, missed = [], [], []
    advantages = part["advantages"]
    scaled = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for row in range(len(scaled)):
        logits = by_hand(held, "actor", part["observations"][row])
        shares = np.exp(logits) / np.exp(logits).sum()
        action = int(part["chosen"][row].argmax())
        ratio = shares[action] / math.exp(part["log_shares"][row])
        gained.append(min(ratio * scaled[row], min(max(ratio, 0.8), 1.2) * scaled[row]))
        entropy.append(-sum(share * math.log(share) for share in shares))
        missed.append((by_hand(held, "critic", part["observations"][row])[0] - part["returns"][row]) ** 2)
    total = -np.mean(gained) + 0.5 * 0.5 * np.mean(missed) - 0.01 * np.mean(entropy)
    assert float(ppo.loss_of(held, part, np)) == pytest.approx(total)


def a_part() -> dict[str, Array]:
    return {name: each[:40] for name, each in parts_of(in_float64(inputs()), 2).items()}


def by_hand(held: dict[str, Array], name: str, seen: Array) -> Array:
    for layer in (0, 1):
        seen = np.tanh(held[f"{name}_{layer}"] @ seen + held[f"{name}_{layer}_bias"])
    found: Array = held[f"{name}_2"] @ seen + held[f"{name}_2_bias"]
    return found


def test_its_gradient_is_the_difference_of_the_loss() -> None:
    held, part = in_float64(weights()), a_part()
    slopes = gradients(lambda traced: ppo.loss_of(traced, part, np), held)[1]
    rng = np.random.default_rng(1)
    along = {name: rng.normal(size=each.shape) for name, each in held.items()}
    step = 1e-6
    ahead, behind = (
        float(ppo.loss_of({name: each + sign * step * along[name] for name, each in held.items()}, part, np))
        for sign in (1, -1)
    )
    expected_slope = sum(float((slopes[name] * along[name]).sum()) for name in held)
    assert (ahead - behind) / (2 * step) == pytest.approx(expected_slope, rel=1e-6)


@pytest.mark.parametrize("mode", AGENTS)
def test_torch_makes_the_same_update(mode: Mode) -> None:
    update = agent(mode, "torch_model").build(weights(mode))
    for _ in range(2):  # each call begins with the weights that were given
        found = update(**{name: torch.tensor(each) for name, each in inputs(mode).items()})
        agree(mode, [each.numpy() for each in found])


@pytest.mark.slow
@pytest.mark.parametrize("mode", AGENTS)
def test_jax_makes_the_same_update(mode: Mode) -> None:
    jax = pytest.importorskip("jax", reason="`make test-slow` installs it and runs this")
    agree(mode, jax.jit(agent(mode, "jax_model").forward)(weights(mode), inputs(mode)))


def agree(mode: Mode, found: Any) -> None:
    for tensor, array in zip(SPEC.in_mode(mode).outputs, found, strict=True):
        right: Array = expected(mode)[tensor.name]
        before: Any = 0.0
        if tensor.name.startswith(AFTER):
            before = weights(mode)[tensor.name.removeprefix(AFTER)]
        off = np.linalg.norm(np.asarray(array) - right) / np.linalg.norm(right - before)
        assert off < 1e-3, (tensor.name, off)


@pytest.mark.parametrize("library", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", AGENTS)
def test_an_iteration_from_the_same_numbers_comes_to_the_same_weights(mode: Mode, library: str) -> None:
    """And one that was undone leaves nothing behind."""
    pytest.importorskip(library, reason="`make test` installs it and runs this")
    trainer = agent(mode, f"{library}_model").trainer(weights(mode), BATCH)
    algorithm = algorithm_of(mode)
    numbers = algorithm.drawn(ENVIRONMENT, BATCH, (3,), 0)
    if mode == "dqn":
        numbers[NOISE][::2] = -1  # every other step without a drawn action
    right, margin = agent(mode, "reference").iteration(weights(mode), BATCH, numbers)
    assert margin > 1e-5
    trainer.begin(numbers)
    back = trainer.hold()
    trainer.iterate(algorithm.drawn(ENVIRONMENT, BATCH, (3,), 9))
    back()
    trainer.forget_times()
    trainer.iterate(numbers)
    for name, array in trainer.weights().items():
        change = np.linalg.norm(right[name] - weights(mode)[name])
        assert np.linalg.norm(array - right[name]) < 1e-3 * change, name
    assert all(part > 0 for part in trainer.parts_s(numbers, 1))


def test_actions_come_as_often_as_their_probabilities_say() -> None:
    shares = np.tile([0.2, 0.5, 0.3], (100_000, 1))
    found = np.bincount(chosen(shares, np.random.default_rng(0).random(100_000), np), minlength=3) / 100_000
    assert found == pytest.approx([0.2, 0.5, 0.3], abs=0.006)
    assert chosen(shares[:2], np.array([0.0, 0.999]), np).tolist() == [0, 2]


def test_an_episode_that_ends_starts_over_where_it_was_drawn() -> None:
    numbers = ALGORITHM.drawn(ENVIRONMENT, BATCH, (1,), 0)
    environments = Environments.begun(ENVIRONMENT, BATCH, numbers[STARTS][0])
    found = environments.collect(lambda _seen, noise: (chosen(np.full((BATCH, 2), 0.5), noise, np), {}), numbers)
    steps, ones = np.nonzero(found[ENDED][:-1])
    assert len(steps) > 4
    for step, one in zip(steps, ones, strict=True):
        start = [each[one] for each in ENVIRONMENT.starts(numbers[STARTS][step])]
        assert found[OBSERVATIONS][step + 1, one] == pytest.approx(start)
    assert (found[ACTIONS] == (numbers[NOISE] >= 0.5)).all()
    assert (found[REWARDS] == 1).all()


def test_a_policy_that_balances_the_pole_has_the_largest_return_and_another_does_not() -> None:
    """A linear law of the angle and its speed is known to balance it; here it is a network that hardly saturates."""
    held = {name: np.zeros_like(each) for name, each in weights().items()}
    assert mean_return(ALGORITHM, ENVIRONMENT, held) < 12  # always the first action
    held["actor_0"][0] = 0.05 * np.array([0.1, 0.3, 1.0, 0.5])
    held["actor_1"][0, 0], held["actor_2"][1, 0] = 1.0, 100.0
    assert mean_return(ALGORITHM, ENVIRONMENT, held) == 500
