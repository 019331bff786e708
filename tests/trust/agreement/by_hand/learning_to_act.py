"""Agents as users of PyTorch and gymnasium write them, from the written settings: ``learning_to_act.py dqn SEED``.

Prints after each epoch the steps of all environments so far, and the mean return of greedy actions, up to 475.
"""

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn

ENVIRONMENTS, HIDDEN, DISCOUNT = 8, 64, 0.99
GOAL, EVALUATED, MOST_EPOCHS = 475, 64, 120

Learning = Iterator[tuple[int, nn.Module]]
"""Yields after each epoch: the steps so far, and the network whose largest output is the action."""


def network(outputs: int, last_gain: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for (inward, outward), gain in zip(
        pairwise((4, HIDDEN, HIDDEN, outputs)), (2**0.5, 2**0.5, last_gain), strict=True
    ):
        layer = nn.Linear(inward, outward)
        nn.init.normal_(layer.weight, 0.0, gain / inward**0.5)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Environments:
    """Each starts over in the step that ends its episode."""

    def __init__(self, seed: int) -> None:
        self._all = [gymnasium.make("CartPole-v1") for _ in range(ENVIRONMENTS)]
        self.seen = np.stack([each.reset(seed=1000 * seed + at)[0] for at, each in enumerate(self._all)])

    def step(self, actions: Any) -> tuple[Any, Any, Any]:
        """Give the rewards, which episodes ended, and what was seen after the step, before any started over."""
        steps = [each.step(int(action)) for each, action in zip(self._all, actions, strict=True)]
        after = np.stack([step[0] for step in steps])
        ended = np.array([step[2] or step[3] for step in steps])
        again = [each.reset()[0] if over else seen for each, over, seen in zip(self._all, ended, after, strict=True)]
        self.seen = np.stack(again)
        return np.array([step[1] for step in steps], np.float32), ended.astype(np.float32), after


def mean_return(preferences: nn.Module) -> float:
    environments = gymnasium.make_vec("CartPole-v1", num_envs=EVALUATED, vectorization_mode="vector_entry_point")
    seen, _ = environments.reset(seed=2026)
    goes_on, returns = np.ones(EVALUATED, bool), np.zeros(EVALUATED)
    while goes_on.any():
        seen, rewards, terminated, truncated, _ = environments.step(preferences(tensor(seen)).argmax(-1).numpy())
        returns += rewards * goes_on
        goes_on &= ~(terminated | truncated)
    return float(returns.mean())


def tensor(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def descend(loss: torch.Tensor, optimizer: torch.optim.Optimizer, parameters: list[Any], largest_norm: float) -> None:
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, largest_norm)
    optimizer.step()


def dqn(seed: int) -> Learning:
    steps, parts, part, kept, explored, least = 16, 64, 64, 512 * 16 * ENVIRONMENTS, 10_000, 0.04
    draw, environments = np.random.default_rng(seed), Environments(seed)
    values, fixed = network(2, 1.0), network(2, 1.0)
    optimizer = torch.optim.Adam(values.parameters(), 1e-3, eps=1e-8)
    memory: list[Any] = []
    done = 0
    while True:
        for _ in range(8 * steps):
            with torch.no_grad():
                best = values(tensor(environments.seen)).argmax(-1).numpy()
            is_drawn = draw.random(ENVIRONMENTS) < max(least, 1 - (1 - least) * done / explored)
            actions, before = np.where(is_drawn, draw.integers(0, 2, ENVIRONMENTS), best), environments.seen
            memory += zip(before, actions, *environments.step(actions), strict=True)
            del memory[:-kept]
            done += ENVIRONMENTS
            if done % (steps * ENVIRONMENTS):
                continue
            fixed.load_state_dict(values.state_dict())
            for rows in draw.integers(0, len(memory), (parts, part)):
                seen, taken, reward, ended, after = map(np.stack, zip(*(memory[row] for row in rows), strict=True))
                with torch.no_grad():
                    targets = tensor(reward) + DISCOUNT * (1 - tensor(ended)) * fixed(tensor(after)).amax(-1)
                found = values(tensor(seen)).gather(1, tensor(taken)[:, None])[:, 0]
                descend(nn.functional.smooth_l1_loss(found, targets), optimizer, [*values.parameters()], 10.0)
        yield done, values


def ppo(seed: int) -> Learning:
    steps, passes, parts, trace, clip = 128, 4, 4, 0.95, 0.2
    draw, environments = np.random.default_rng(seed), Environments(seed)
    actor, critic = network(2, 0.01), network(1, 1.0)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-3, eps=1e-5)
    done = 0
    while True:
        for _ in range(4):
            found: list[Any] = []
            with torch.no_grad():
                for _ in range(steps):
                    seen = tensor(environments.seen)
                    policy = torch.distributions.Categorical(logits=actor(seen))
                    action = policy.sample()
                    reward, ended, _ = environments.step(action.numpy())
                    kept = (policy.log_prob(action), critic(seen)[:, 0], tensor(reward), tensor(ended))
                    found.append((seen, action, *kept))
                seen, action, log_share, value, reward, ended = map(torch.stack, zip(*found, strict=True))
                following = torch.cat([value[1:], critic(tensor(environments.seen))[:, 0][None]])
                surprise = reward + DISCOUNT * following * (1 - ended) - value
                advantage = torch.zeros_like(value)
                after = torch.zeros(ENVIRONMENTS)
                for at in reversed(range(steps)):
                    after = advantage[at] = surprise[at] + DISCOUNT * trace * (1 - ended[at]) * after
            flat = [each.flatten(0, 1) for each in (seen, action, log_share, advantage, advantage + value)]
            for _ in range(passes):
                for rows in np.split(draw.permutation(steps * ENVIRONMENTS), parts):
                    seen_, action_, log_share_, advantage_, return_ = (each[rows] for each in flat)
                    policy = torch.distributions.Categorical(logits=actor(seen_))
                    ratio = (policy.log_prob(action_) - log_share_).exp()
                    scaled = (advantage_ - advantage_.mean()) / (advantage_.std(correction=0) + 1e-8)
                    gained = torch.minimum(ratio * scaled, ratio.clip(1 - clip, 1 + clip) * scaled).mean()
                    missed = (critic(seen_)[:, 0] - return_).square().mean()
                    loss = 0.25 * missed - gained - 0.01 * policy.entropy().mean()
                    descend(loss, optimizer, parameters, 0.5)
            done += steps * ENVIRONMENTS
        yield done, actor


def main(algorithm: str, seed: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    learning = {"dqn": dqn, "ppo": ppo}[algorithm](seed)
    for _, (done, preferences) in zip(range(MOST_EPOCHS), learning, strict=False):
        with torch.no_grad():
            score = mean_return(preferences)
        print(done, score, flush=True)
        if score >= GOAL:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
