"""Functions of one's own in JAX, as a user of ``fairlap compare own_jax_nets:perceptron`` would write them."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

BATCH, CLASSES, TOKENS, VOCABULARY, WIDTH = 4, 10, 6, 20, 16

_count = itertools.count(1)


def _drawn(*shape: int) -> np.ndarray:
    rng = np.random.default_rng([1, *shape])
    return np.asarray(rng.standard_normal(shape) / np.sqrt(shape[0]), np.float32)


def _images() -> tuple[np.ndarray]:
    return (np.random.default_rng(0).standard_normal((BATCH, 12, 12, 3)).astype(np.float32),)


def _convolutional(params: Any, image: Any) -> Any:
    along = ("NHWC", "HWIO", "NHWC")
    states = jax.lax.conv_general_dilated(image, params["first"]["kernel"], (1, 1), "SAME", dimension_numbers=along)
    states = jax.nn.gelu(states + params["first"]["bias"])
    states = jax.lax.conv_general_dilated(states, params["second"], (2, 2), "VALID", dimension_numbers=along)
    return jax.nn.relu(states).mean((1, 2)) @ params["head"]["kernel"] + params["head"]["bias"]


def _parameters() -> dict[str, Any]:
    first = {"kernel": _drawn(3, 3, 3, 8), "bias": np.zeros(8, np.float32)}
    head = {"kernel": _drawn(8, CLASSES), "bias": np.zeros(CLASSES, np.float32)}
    return {"first": first, "second": _drawn(3, 3, 8, 8), "head": head}


def convolutional() -> Any:
    return _convolutional, _parameters(), _images()


def partly_frozen() -> Any:
    """Its first layer is not trained, since no gradient passes into it."""

    def forward(params: Any, image: Any) -> Any:
        return _convolutional({**params, "first": jax.lax.stop_gradient(params["first"])}, image)

    return forward, _parameters(), _images()


def _recurrent(params: Any, ids: Any) -> Any:
    """Mix looked-up rows by attention, then by a cell that goes along the tokens."""
    rows = params["table"][ids]
    scores = jnp.einsum("btw,bsw->bts", rows @ params["query"], rows @ params["key"]) / np.sqrt(WIDTH)
    scores = jnp.where(jnp.tril(jnp.ones((TOKENS, TOKENS), bool)), scores, -1e9)
    rows = rows + jax.nn.softmax(scores) @ rows

    def step(state: Any, row: Any) -> Any:
        state = jnp.tanh(row @ params["in"] + state @ params["on"])
        return state, state

    _, states = jax.lax.scan(step, jnp.zeros_like(rows[:, 0]), rows.swapaxes(0, 1))
    return states.swapaxes(0, 1) @ params["table"].T


def recurrent() -> Any:
    square = {name: _drawn(WIDTH, WIDTH) for name in ("query", "key", "in", "on")}
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (BATCH, TOKENS), dtype=np.int32)
    return _recurrent, {"table": _drawn(VOCABULARY, WIDTH), **square}, (ids,)


def with_averages() -> Any:
    """Keep averages as ``flax.linen`` does."""

    def forward(variables: Any, image: Any) -> Any:
        stats = variables["batch_stats"]["normalised"]
        return _convolutional(variables["params"], (image - stats["mean"]) / jnp.sqrt(stats["var"] + 1e-3))

    stats = {"mean": np.full(3, 0.1, np.float32), "var": np.ones(3, np.float32)}
    return forward, {"params": _parameters(), "batch_stats": {"normalised": stats}}, _images()


MOMENTUM, EPSILON = 0.9, 1e-3


def _normalised(stats: Any, image: Any) -> Any:
    return (image - stats["mean"]) / jnp.sqrt(stats["var"] + EPSILON)


def normalised() -> Any:
    """Normalise images by the averages, and in training by the batch, whose statistics move the averages."""

    def forward(variables: Any, image: Any) -> Any:
        return _convolutional(variables["params"], _normalised(variables["averages"], image))

    def training(variables: Any, image: Any) -> Any:
        of_batch = {"mean": image.mean((0, 1, 2)), "var": image.var((0, 1, 2))}
        moved = jax.tree.map(lambda old, new: MOMENTUM * old + (1 - MOMENTUM) * new, variables["averages"], of_batch)
        return _convolutional(variables["params"], _normalised(of_batch, image)), {"averages": moved}

    averages = {"mean": np.full(3, 0.1, np.float32), "var": np.full(3, 2.0, np.float32)}
    return forward, {"params": _parameters(), "averages": averages}, _images(), training


def moves_what_it_lacks() -> Any:
    forward, variables, images, training = normalised()
    return forward, variables, images, lambda held, image: (training(held, image)[0], {"other": image.mean()})


def moves_nothing() -> Any:
    forward, variables, images, training = normalised()
    return forward, variables, images, lambda held, image: training(held, image)[0]


def casting() -> Any:
    return lambda params, image: _convolutional(params, image).astype(jnp.float32), _parameters(), _images()


def smoothed(outputs: Any, labels: Any) -> Any:
    wanted = 0.9 * jax.nn.one_hot(labels, outputs.shape[-1], dtype=outputs.dtype) + 0.1 / outputs.shape[-1]
    return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(outputs), axis=-1))


def per_item(outputs: Any, labels: Any) -> Any:
    return jnp.mean(outputs, axis=-1)


def counted(outputs: Any, labels: Any) -> Any:
    """Another loss in each trace."""
    return jnp.mean(jnp.square(outputs)) * next(_count)


def partly_cut_off() -> Any:
    """Its first bias is used twice, and one of the uses has no gradient."""

    def forward(params: Any, image: Any) -> Any:
        cut_off = jax.lax.stop_gradient(params["first"]["bias"].sum() + 0.1)
        return _convolutional(params, image) + cut_off * jnp.arange(CLASSES)

    return forward, _parameters(), _images()
