"""The losses of a model in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.models.spec import Loss

_NEVER = -1e30  # whose slopes are numbers, other than those of infinity


def loss_with(loss: Callable[..., Any], joined: Any, learnt: Any, fixed: Any, labels: Any, inputs: Any) -> Any:
    return loss(labels, joined(learnt, fixed), inputs)


def loss_of_batch(model: Any, kind: Loss) -> Callable[..., Any]:
    """Of labels, parameters, inputs and what takes moved statistics, if any does.

    A user's own loss is computed by the model, of whatever it returns.
    """
    from jax import numpy as jnp

    def loss(labels: Any, params: Any, inputs: Any, *statistics: Any) -> Any:
        return loss_of(kind, model.forward(params, inputs, *statistics)[0].astype(jnp.float32), labels)

    def own(labels: Any, params: Any, inputs: Any, *statistics: Any) -> Any:
        return model.own_loss(params, inputs, labels, *statistics)

    return own if kind == "own" else loss


def loss_of(kind: Loss, first: Any, labels: Any) -> Any:
    import jax
    from jax import numpy as jnp

    if kind == "mean_square":
        return jnp.mean(jnp.square(first))
    if kind == "square_error":
        return jnp.mean(jnp.square(first - labels))
    if kind == "ctc":
        return _of_frames(jax.nn.log_softmax(first), labels)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(first), labels[..., None], axis=-1)
    return -jnp.mean(chosen)


def _of_frames(log_shares: Any, labels: Any) -> Any:
    """Add up all ways to spell a label, frame by frame: JAX itself has no such loss."""
    from jax import lax
    from jax import numpy as jnp

    items, longest = labels.shape
    lengths = (labels != 0).sum(axis=1)
    spelt = jnp.zeros((items, 2 * longest + 1), labels.dtype).at[:, 1::2].set(labels)
    emitted = jnp.take_along_axis(log_shares, spelt[:, None, :], axis=2)
    skips = (spelt != 0) & (spelt != jnp.pad(spelt, ((0, 0), (2, 0)))[:, :-2])

    def moved(ways: Any, places: int) -> Any:
        return jnp.pad(ways, ((0, 0), (places, 0)), constant_values=_NEVER)[:, :-places]

    def step(ways: Any, now: Any) -> tuple[Any, None]:
        skipped = jnp.where(skips, moved(ways, 2), _NEVER)
        return jnp.logaddexp(jnp.logaddexp(ways, moved(ways, 1)), skipped) + now, None

    first = jnp.where(jnp.arange(spelt.shape[1]) < 2, emitted[:, 0], _NEVER)
    ways, _ = lax.scan(step, first, emitted[:, 1:].swapaxes(0, 1))
    blank, spoken = (
        jnp.take_along_axis(ways, place[:, None], axis=1)[:, 0] for place in (2 * lengths, 2 * lengths - 1)
    )
    likely = jnp.logaddexp(blank, jnp.where(lengths > 0, spoken, _NEVER))
    return -jnp.mean(likely / jnp.maximum(lengths, 1))
