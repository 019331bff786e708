"""A model as a user of flax writes it: convolutions and normalised layers, with their variables and a batch."""

import jax
import numpy as np
from flax import linen


class Network(linen.Module):
    @linen.compact
    def __call__(self, image):
        hidden = linen.gelu(linen.Conv(32, (3, 3), strides=2)(image))
        hidden = linen.gelu(linen.Conv(64, (3, 3), strides=2)(linen.LayerNorm()(hidden)))
        return linen.Dense(10)(linen.LayerNorm()(hidden).mean(axis=(1, 2)))


def network():
    image = np.random.default_rng(0).standard_normal((8, 64, 64, 3)).astype(np.float32)
    return Network().apply, Network().init(jax.random.key(0), image), (image,)
