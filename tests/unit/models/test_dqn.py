"""Deep Q-learning against its formulas by hand, and against a plain loop with a list for its memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.agents.algorithm import ACTIONS, ENDED, NOISE, OBSERVATIONS, REWARDS, ROWS, STARTS
from fairlap.bench_models.agents.dqn import algorithm as dqn
from fairlap.bench_models.cartpole.spec import ENVIRONMENT, SPEC
from fairlap.models.checks.differentiation import gradients
from fairlap.models.draw import draw_weights

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
pytestmark = pytest.mark.usefixtures("one_torch_thread")

Array = npt.NDArray[Any]
BATCH, KEPT, ITERATIONS = 3, 2, 4


def weights() -> dict[str, Array]:
    return dict(draw_weights(SPEC.in_mode("dqn"), seed=0))


def in_float64() -> dict[str, Array]:
    return {name: each.astype(np.float64) for name, each in weights().items()}


def by_hand(held: dict[str, Array], seen: Array) -> Array:
    for layer in (0, 1):
        seen = np.tanh(held[f"values_{layer}"] @ seen + held[f"values_{layer}_bias"])
    found: Array = held["values_2"] @ seen + held["values_2_bias"]
    return found


def a_part(rows: int = 20) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {
        OBSERVATIONS: rng.normal(size=(rows, 4)),
        ACTIONS: rng.integers(0, 2, rows),
        REWARDS: rng.random(rows),
        ENDED: rng.integers(0, 2, rows),
        dqn.NEXT: rng.normal(size=(rows, 4)),
    }


def test_targets_are_rewards_and_the_largest_value_afterwards_unless_the_episode_ended() -> None:
    held, part = in_float64(), a_part()
    found = dqn.targets_of(held, part, np)
    for row, target in enumerate(found):
        after = 0.0 if part[ENDED][row] else max(by_hand(held, part[dqn.NEXT][row]))
        assert target == pytest.approx(part[REWARDS][row] + 0.99 * after)


def test_the_loss_is_hubers() -> None:
    """Half the square up to 1, and the distance less a half beyond."""
    held, part = in_float64(), a_part()
    part["chosen"] = np.eye(2)[part[ACTIONS]]
    targets = np.random.default_rng(1).normal(0, 2, len(part[ACTIONS]))
    lost = []
    for row, target in enumerate(targets):
        off = abs(by_hand(held, part[OBSERVATIONS][row])[part[ACTIONS][row]] - target)
        lost.append(off**2 / 2 if off < 1 else off - 0.5)
    assert 0 < sum(each > 0.5 for each in lost) < len(lost)
    assert float(dqn.loss_of(held, part, targets, np)) == pytest.approx(np.mean(lost))


def test_its_gradient_is_the_difference_of_the_loss() -> None:
    held, part = in_float64(), a_part()
    part["chosen"] = np.eye(2)[part[ACTIONS]]
    targets = np.random.default_rng(1).normal(0, 2, len(part[ACTIONS]))
    slopes = gradients(lambda traced: dqn.loss_of(traced, part, targets, np), held)[1]
    rng = np.random.default_rng(2)
    along = {name: rng.normal(size=each.shape) for name, each in held.items()}
    step = 1e-6
    ahead, behind = (
        float(dqn.loss_of({name: each + sign * step * along[name] for name, each in held.items()}, part, targets, np))
        for sign in (1, -1)
    )
    expected = sum(float((slopes[name] * along[name]).sum()) for name in held)
    assert (ahead - behind) / (2 * step) == pytest.approx(expected, rel=1e-6)


def test_drawn_actions_become_rarer_in_a_line() -> None:
    assert dqn.exploration(np.array([0, 5000, 10_000, 10**6])) == pytest.approx([1.0, 0.52, 0.04, 0.04])
    for iteration, share in ((0, 1.0), (39, 0.52), (10**4, 0.04)):
        found = dqn.drawn_actions(np.random.default_rng(0), iteration, 128, 2)
        of_batch = share if iteration != 39 else 0.04  # 39 iterations of 128 environments are beyond the line
        assert (found >= 0).mean() == pytest.approx(of_batch, abs=0.1)
        assert found[found >= 0].mean() == pytest.approx(0.5, abs=0.1)


def test_rows_are_of_what_is_remembered() -> None:
    for iteration, most in ((0, 16 * 8), (2, 3 * 16 * 8), (600, 512 * 16 * 8)):
        found = dqn.rows(np.random.default_rng(0), iteration, 8)
        assert 0.9 * most < found.max() < most


class ByHand:
    """The loop that its users write, in float64 PyTorch: a list, a target network, ``smooth_l1_loss`` and Adam."""

    def __init__(self) -> None:
        held = in_float64()
        layers: list[Any] = []
        for layer in range(3):
            linear = torch.nn.Linear(*held[f"values_{layer}"].T.shape, dtype=torch.float64)
            linear.weight.data = torch.from_numpy(held[f"values_{layer}"].copy())
            linear.bias.data = torch.from_numpy(held[f"values_{layer}_bias"].copy())
            layers += [linear, torch.nn.Tanh()]
        self.network = torch.nn.Sequential(*layers[:-1])
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3)
        self.memory: list[list[Any]] = []
        self.iterations = 0
        self.states: list[Any] = []
        self.elapsed = [0] * BATCH

    def iterate(self, numbers: dict[str, Array]) -> None:
        if not self.states:
            self.states = [self.start(numbers[STARTS][0][one]) for one in range(BATCH)]
        seen: list[Any] = []
        for step in range(dqn.STEPS):
            for one in range(BATCH):
                before = np.array(self.states[one])
                action = int(numbers[NOISE][step, one])
                if action < 0:
                    action = int(self.network(torch.from_numpy(before)).argmax())
                after, reward, over = ENVIRONMENT.advance(tuple(before), float(action), np)
                self.elapsed[one] += 1
                ended = bool(over) or self.elapsed[one] >= 500
                if ended:
                    after, self.elapsed[one] = self.start(numbers[STARTS][step][one]), 0
                self.states[one] = after
                seen.append((before, action, float(reward), float(ended), np.array(after)))
        oldest = self.iterations % KEPT
        self.memory[oldest : oldest + 1] = [seen]
        self.iterations += 1
        self.learn([one for kept in self.memory for one in kept], numbers[ROWS])

    def learn(self, steps: list[Any], rows: Array) -> None:
        target = [each.detach().clone() for each in self.network.parameters()]
        names = [name for name, _ in self.network.named_parameters()]
        fixed = dict(zip(names, target, strict=True))
        for part in rows:
            chosen = [steps[row] for row in part]
            before, action, reward, ended, after = (torch.tensor(np.array(each)) for each in zip(*chosen, strict=True))
            with torch.no_grad():
                later = torch.func.functional_call(self.network, fixed, (after,)).max(-1).values
            values = self.network(before).gather(1, action[:, None])[:, 0]
            loss = torch.nn.functional.smooth_l1_loss(values, reward + 0.99 * (1 - ended) * later)
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
            self.optimizer.step()

    @staticmethod
    def start(shares: Array) -> tuple[Any, ...]:
        return tuple(float(each[0]) for each in ENVIRONMENT.starts(shares[None].astype(np.float64)))


@pytest.mark.parametrize("library", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_iterations_are_those_of_a_plain_loop_also_when_the_memory_is_full(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library, reason="`make test` installs it and runs this")
    module = import_module(f"fairlap.bench_models.agents.dqn.{library}_model")
    for place in (dqn, module):
        monkeypatch.setattr(place, "KEPT", KEPT)
    trainer, loop = module.Implementation(ENVIRONMENT).trainer(weights(), BATCH), ByHand()
    for iteration in range(ITERATIONS):
        numbers = dqn.ALGORITHM.drawn(ENVIRONMENT, BATCH, (5,), iteration)
        numbers[NOISE][::3] = -1
        numbers[ROWS] = numbers[ROWS][:10]
        if not iteration:
            trainer.begin(numbers)
        trainer.iterate(numbers)
        loop.iterate(numbers)
    before, found = weights(), trainer.weights()
    for layer in range(3):
        right = loop.network[2 * layer].weight.detach().numpy()
        change = right - before[f"values_{layer}"]
        off = np.linalg.norm(found[f"values_{layer}"] - right) / np.linalg.norm(change)
        assert off < 1e-3, (layer, off)
