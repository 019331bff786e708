"""CartPole as users of NumPy, PyTorch, JAX, gymnasium and gymnax step it: ``simulating.py with_numpy``.

A call starts 64 environments and takes 256 steps of drawn actions in each; it sums what it observes. Episodes that
ended start over in the next step, as in gymnasium: there with a new draw, elsewhere where they began.
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


def moved(x: Any, v: Any, angle: Any, turning: Any, action: Any, library: Any) -> tuple[Any, ...]:
    sine, cosine = library.sin(angle), library.cos(angle)
    force = (20.0 * action - 10.0 + 0.05 * turning * turning * sine) / 1.1
    turned = (9.8 * sine - cosine * force) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
    faster = force - 0.05 * turned * cosine / 1.1
    return x + 0.02 * v, v + 0.02 * faster, angle + 0.02 * turning, turning + 0.02 * turned


def time_sets(call: Callable[[int], Any]) -> None:
    in_turn = cycle((0, 1))
    time_calls(lambda: call(next(in_turn)))


def with_numpy() -> None:
    def simulate(which: int) -> Any:
        first = tuple(STARTS[which])
        state, elapsed, ended = first, np.zeros(ENVIRONMENTS, np.int32), np.zeros(ENVIRONMENTS, bool)
        seen = np.zeros((ENVIRONMENTS, 4), np.float32)
        returns, episodes = np.zeros(ENVIRONMENTS), np.zeros(ENVIRONMENTS, np.int32)
        for action in ACTIONS[which]:
            found = moved(*state, action, np)
            over = (np.abs(found[0]) > 2.4) | (np.abs(found[2]) > 0.20943951)
            elapsed = np.where(ended, 0, elapsed + 1)
            state = tuple(np.where(ended, start, now) for start, now in zip(first, found, strict=True))
            returns += np.where(ended, 0.0, 1.0)
            ended = ~ended & (over | (elapsed >= MOST_STEPS))
            episodes += ended
            seen += np.stack(state, -1).astype(np.float32)
        return seen, returns, episodes

    time_sets(simulate)


def with_torch() -> None:
    import torch

    torch.set_num_threads(1)

    def simulate(starts: Any, actions: Any) -> Any:
        first = starts.unbind()
        state, elapsed = first, torch.zeros(ENVIRONMENTS, dtype=torch.int32)
        ended, episodes = elapsed > 0, torch.zeros_like(elapsed)
        seen, returns = torch.zeros(ENVIRONMENTS, 4), torch.zeros(ENVIRONMENTS, dtype=torch.float64)
        for action in actions:
            found = moved(*state, action, torch)
            over = (found[0].abs() > 2.4) | (found[2].abs() > 0.20943951)
            elapsed = torch.where(ended, 0, elapsed + 1)
            state = tuple(torch.where(ended, start, now) for start, now in zip(first, found, strict=True))
            returns += torch.where(ended, 0.0, 1.0)
            ended = ~ended & (over | (elapsed >= MOST_STEPS))
            episodes += ended
            seen += torch.stack(state, -1).float()
        return seen, returns, episodes

    sets = [(torch.from_numpy(STARTS[which]), torch.from_numpy(ACTIONS[which]).double()) for which in (0, 1)]
    with torch.inference_mode():
        time_sets(lambda which: simulate(*sets[which]))


def with_jax() -> None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def simulate(first: Any, actions: Any) -> Any:
        def step(carried: Any, action: Any) -> tuple[Any, None]:
            state, elapsed, ended, seen, returns, episodes = carried
            found = moved(*state, action, jnp)
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


def with_gymnax() -> None:
    import gymnax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    environment, parameters = gymnax.make("CartPole-v1")
    key = jax.random.key(0)
    start_of_any = environment.reset_env(key, parameters)[1]
    begin = jax.vmap(lambda x, v, angle, turning: start_of_any.replace(x=x, x_dot=v, theta=angle, theta_dot=turning))
    step_all = jax.vmap(lambda state, action: environment.step_env(key, state, action, parameters))

    @jax.jit
    def simulate(starts: Any, actions: Any) -> Any:
        first = begin(*starts)
        first_seen = jax.vmap(environment.get_obs)(first)

        def step(carried: Any, action: Any) -> tuple[Any, None]:
            state, ended, total, returns, episodes = carried
            seen, stepped, reward, terminated, _info = step_all(state, action)
            over = terminated | jax.vmap(environment.is_truncated, (0, None))(stepped, parameters)
            state = jax.tree.map(lambda start, now: jnp.where(ended, start, now), first, stepped)
            total = total + jnp.where(ended[:, None], first_seen, seen).astype(jnp.float32)
            returns = returns + jnp.where(ended, 0.0, reward)
            ended = ~ended & over
            return (state, ended, total, returns, episodes + ended), None

        whole = jnp.zeros(ENVIRONMENTS, jnp.int32)
        begun = (first, whole > 0, jnp.zeros((ENVIRONMENTS, 4), jnp.float32), jnp.zeros(ENVIRONMENTS), whole)
        return jax.lax.scan(step, begun, actions)[0][2:]

    sets = [jax.device_put((STARTS[which], ACTIONS[which])) for which in (0, 1)]
    time_sets(lambda which: jax.block_until_ready(simulate(*sets[which])))


def with_gymnasium() -> None:
    time_gymnasium("sync")


def with_gymnasium_vectorized() -> None:
    time_gymnasium("vector_entry_point")


def time_gymnasium(mode: str) -> None:
    import gymnasium

    environments = gymnasium.make_vec("CartPole-v1", num_envs=ENVIRONMENTS, vectorization_mode=mode)

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
    run(
        {
            "with_numpy": with_numpy,
            "with_torch": with_torch,
            "with_jax": with_jax,
            "with_gymnax": with_gymnax,
            "with_gymnasium": with_gymnasium,
            "with_gymnasium_vectorized": with_gymnasium_vectorized,
        }
    )
