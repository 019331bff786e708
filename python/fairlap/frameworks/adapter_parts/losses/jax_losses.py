"""The losses of a model in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.models.spec import Loss


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
    chosen = jnp.take_along_axis(jax.nn.log_softmax(first), labels[..., None], axis=-1)
    return -jnp.mean(chosen)
