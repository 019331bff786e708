"""PPO against the loop that its users write in PyTorch, from the same weights and drawn numbers."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.agents.algorithm import NOISE, ROWS, STARTS
from fairlap.bench_models.agents.ppo.algorithm import ALGORITHM, STEPS
from fairlap.bench_models.cartpole.spec import ENVIRONMENT, SPEC
from fairlap.models.draw import draw_weights

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
pytestmark = pytest.mark.usefixtures("one_torch_thread")

Array = npt.NDArray[Any]
BATCH, ITERATIONS, MOST_STEPS = 2, 3, 15
SHORT = replace(ENVIRONMENT, most_steps=MOST_STEPS)  # so that many episodes are cut, and others fall


def weights() -> dict[str, Array]:
    return dict(draw_weights(SPEC.in_mode("ppo"), seed=0))


def network(name: str) -> Any:
    layers: list[Any] = []
    for layer in range(3):
        weight, bias = (torch.from_numpy(weights()[f"{name}_{layer}{part}"]).double() for part in ("", "_bias"))
        linear = torch.nn.Linear(*weight.T.shape, dtype=torch.float64)
        linear.weight.data, linear.bias.data = weight, bias
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


class ByHand:
    """In float64: single environments, advantages by recursion, ``Categorical``, ``clip_grad_norm_`` and Adam."""

    def __init__(self) -> None:
        self.actor, self.critic = network("actor"), network("critic")
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=1e-3, eps=1e-5)
        self.states: list[Any] = []
        self.elapsed = [0] * BATCH
        self.cut = self.fallen = 0

    def iterate(self, numbers: dict[str, Array]) -> None:
        if not self.states:
            self.states = [start(numbers[STARTS][0][one]) for one in range(BATCH)]
        with torch.no_grad():
            seen, actions, rewards, ended = self.acted(numbers)
            old = torch.distributions.Categorical(logits=self.actor(seen[:-1])).log_prob(actions)
            values = self.critic(seen)[..., 0]
            advantages = torch.zeros(STEPS, BATCH, dtype=torch.float64)
            for one in range(BATCH):
                later = 0.0
                for step in reversed(range(STEPS)):
                    after = 0.0 if ended[step, one] else values[step + 1, one]
                    later = 0.0 if ended[step, one] else later
                    surprise = rewards[step, one] + 0.99 * after - values[step, one]
                    later = advantages[step, one] = surprise + 0.99 * 0.95 * later
        flat = [each.flatten(0, 1) for each in (seen[:-1], actions, old, advantages, advantages + values[:-1])]
        for rows in numbers[ROWS]:
            self.descend(*(each[torch.from_numpy(rows).long()] for each in flat))

    def acted(self, numbers: dict[str, Array]) -> tuple[Any, ...]:
        seen = [np.array(self.states)]
        actions = np.zeros((STEPS, BATCH), np.int64)
        rewards, ended = np.zeros((STEPS, BATCH)), np.zeros((STEPS, BATCH), bool)
        for step in range(STEPS):
            for one in range(BATCH):
                shares = torch.softmax(self.actor(torch.from_numpy(np.array(self.states[one]))), -1)
                action = actions[step, one] = int(numbers[NOISE][step, one] >= shares[0])
                after, rewards[step, one], over = SHORT.advance(self.states[one], float(action), np)
                self.elapsed[one] += 1
                is_cut = self.elapsed[one] >= MOST_STEPS
                self.cut, self.fallen = self.cut + is_cut, self.fallen + bool(over)
                ended[step, one] = over or is_cut
                if ended[step, one]:
                    after, self.elapsed[one] = start(numbers[STARTS][step][one]), 0
                self.states[one] = tuple(map(float, after))
            seen.append(np.array(self.states))
        return tuple(map(torch.from_numpy, (np.array(seen), actions, rewards, ended)))

    def descend(self, seen: Any, actions: Any, old: Any, advantages: Any, returns: Any) -> None:
        policy = torch.distributions.Categorical(logits=self.actor(seen))
        ratio = torch.exp(policy.log_prob(actions) - old)
        scaled = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
        lost = -torch.minimum(ratio * scaled, torch.clamp(ratio, 0.8, 1.2) * scaled).mean()
        missed = 0.25 * ((self.critic(seen)[:, 0] - returns) ** 2).mean()
        self.optimizer.zero_grad()
        (lost + missed - 0.01 * policy.entropy().mean()).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 0.5)
        self.optimizer.step()


def start(shares: Array) -> tuple[float, ...]:
    return tuple(float(each[0]) for each in ENVIRONMENT.starts(shares[None].astype(np.float64)))


@pytest.mark.parametrize("library", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_iterations_are_those_of_a_plain_loop(library: str) -> None:
    pytest.importorskip(library, reason="`make test` installs it and runs this")
    module = import_module(f"fairlap.bench_models.agents.ppo.{library}_model")
    trainer, loop = module.Implementation(SHORT).trainer(weights(), BATCH), ByHand()
    for iteration in range(ITERATIONS):
        numbers = ALGORITHM.drawn(SHORT, BATCH, (5,), iteration)
        if not iteration:
            trainer.begin(numbers)
        trainer.iterate(numbers)
        loop.iterate(numbers)
    assert min(loop.cut, loop.fallen) > 5
    before, found = weights(), trainer.weights()
    for name, sequence in (("actor", loop.actor), ("critic", loop.critic)):
        for layer in range(3):
            right = sequence[2 * layer].weight.detach().numpy()
            change = np.linalg.norm(right - before[f"{name}_{layer}"])
            assert np.linalg.norm(found[f"{name}_{layer}"] - right) < 1e-3 * change, (name, layer)
