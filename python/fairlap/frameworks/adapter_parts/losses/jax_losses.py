"""The losses of a model in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.models.spec import Loss


def loss_with(
    forward: Callable[..., Any], kind: Loss, joined: Any, learnt: Any, fixed: Any, labels: Any, inputs: Any
) -> Any:
    from jax import numpy as jnp

    return loss_of(kind, forward(joined(learnt, fixed), inputs)[0].astype(jnp.float32), labels)


def loss_of(kind: Loss, first: Any, labels: Any) -> Any:
    import jax
    from jax import numpy as jnp

    if kind == "mean_square":
        return jnp.mean(jnp.square(first))
    if kind == "square_error":
        return jnp.mean(jnp.square(first - labels))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(first), labels[..., None], axis=-1)
    return -jnp.mean(chosen)
