"""A model as a user of JAX writes it: a function, its parameters, and a batch of inputs."""

import jax
import jax.numpy as jnp
import numpy as np


def normalised(hidden, scale):
    return scale * (hidden - hidden.mean(-1, keepdims=True)) * jax.lax.rsqrt(hidden.var(-1, keepdims=True) + 1e-5)


def forward(params, x):
    hidden = x @ params["in"]
    for scale, wide, narrow in params["layers"]:
        hidden = hidden + jax.nn.gelu(normalised(hidden, scale) @ wide) @ narrow
    return hidden @ params["out"]


def residual_network():
    rng = np.random.default_rng(0)

    def weight(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    layers = [(np.ones(256, np.float32), weight(256, 1024), weight(1024, 256)) for _ in range(4)]
    params = {"in": weight(64, 256), "layers": layers, "out": weight(256, 10)}
    return forward, params, (jnp.asarray(weight(64, 64)),)
