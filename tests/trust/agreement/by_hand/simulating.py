"""CartPole as users of NumPy, JAX and gymnasium step it: ``simulating.py with_numpy``.

A call starts 64 environments and takes 256 steps of drawn actions in each; it sums what it observes. In NumPy and JAX
episodes that ended start over in the next step, where they began, as in gymnasium.
"""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
from timing import run, time_calls

STEPS, ENVIRONMENTS, MOST_STEPS = 256, 64, 500
DRAWN = np.random.default_rng(0)
STARTS = DRAWN.uniform(-0.05, 0.05, (2, 4, ENVIRONMENTS))
ACTIONS = DRAWN.integers(0, 2, (2, STEPS, ENVIRONMENTS))


def moved(x: Any, v: Any, angle: Any, turning: Any, push: Any, library: Any) -> tuple[Any, ...]:
    sine, cosine = library.sin(angle), library.cos(angle)
    force = (push + 0.05 * turning**2 * sine) / 1.1
    turned = (9.8 * sine - cosine * force) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
    faster = force - 0.05 * turned * cosine / 1.1
    return x + 0.02 * v, v + 0.02 * faster, angle + 0.02 * turning, turning + 0.02 * turned


def time_sets(call: Callable[[int], Any]) -> None:
    in_turn = cycle((0, 1))
    time_calls(lambda: call(next(in_turn)))


def with_numpy() -> None:
    pushes = 20.0 * ACTIONS - 10.0

    def simulate(which: int) -> Any:
        first = tuple(STARTS[which])
        state, elapsed, ended = first, np.zeros(ENVIRONMENTS, np.int32), np.zeros(ENVIRONMENTS, bool)
        seen = np.zeros((ENVIRONMENTS, 4), np.float32)
        returns, episodes = np.zeros(ENVIRONMENTS), np.zeros(ENVIRONMENTS, np.int32)
        for push in pushes[which]:
            found = moved(*state, push, np)
            over = (np.abs(found[0]) > 2.4) | (np.abs(found[2]) > 0.20943951)
            elapsed = np.where(ended, 0, elapsed + 1)
            state = tuple(np.where(ended, start, now) for start, now in zip(first, found, strict=True))
            returns += np.where(ended, 0.0, 1.0)
            ended = ~ended & (over | (elapsed >= MOST_STEPS))
            episodes += ended
            seen += np.stack(state, -1).astype(np.float32)
        return seen, returns, episodes

    time_sets(simulate)


def with_jax() -> None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def simulate(first: Any, actions: Any) -> Any:
        def step(carried: Any, action: Any) -> tuple[Any, None]:
            state, elapsed, ended, seen, returns, episodes = carried
            found = moved(*state, 20.0 * action - 10.0, jnp)
            over = (jnp.abs(found[0]) > 2.4) | (jnp.abs(found[2]) > 0.20943951)
            elapsed = jnp.where(ended, 0, elapsed + 1)
            state = tuple(jnp.where(ended, start, now) for start, now in zip(first, found, strict=True))
            returns = returns + jnp.where(ended, 0.0, 1.0)
            ended = ~ended & (over | (elapsed >= MOST_STEPS))
            seen = seen + jnp.stack(state, -1).astype(jnp.float32)
            return (state, elapsed, ended, seen, returns, episodes + ended), None

        whole = jnp.zeros(ENVIRONMENTS, jnp.int32)
        seen = jnp.zeros((ENVIRONMENTS, 4), jnp.float32)
        begun = (tuple(first), whole, whole > 0, seen, jnp.zeros(ENVIRONMENTS), whole)
        return jax.lax.scan(step, begun, actions)[0][3:]

    sets = [jax.device_put((STARTS[which], ACTIONS[which])) for which in (0, 1)]
    time_sets(lambda which: jax.block_until_ready(simulate(*sets[which])))


def with_gymnasium() -> None:
    import gymnasium

    environments = gymnasium.make_vec("CartPole-v1", num_envs=ENVIRONMENTS, vectorization_mode="sync")

    def simulate(which: int) -> Any:
        seen, _ = environments.reset()
        total, returns, episodes = np.zeros_like(seen), np.zeros(ENVIRONMENTS), np.zeros(ENVIRONMENTS, np.int32)
        for action in ACTIONS[which]:
            seen, rewards, terminated, truncated, _ = environments.step(action)
            total += seen
            returns += rewards
            episodes += terminated | truncated
        return total, returns, episodes

    time_sets(simulate)


if __name__ == "__main__":
    run({"with_numpy": with_numpy, "with_jax": with_jax, "with_gymnasium": with_gymnasium})
