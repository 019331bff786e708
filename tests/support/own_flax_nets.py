"""Networks of one's own in flax with batch normalisation, as a user would hand them over."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from flax import linen, nnx

BATCH, CLASSES = 4, 10
DIMENSIONS = (BATCH, 12, 12, 3)


def _images() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(DIMENSIONS).astype(np.float32)


class Net(linen.Module):  # type: ignore[misc]
    @linen.compact  # type: ignore[untyped-decorator]
    def __call__(self, image: Any, train: bool = False) -> Any:
        states = linen.Conv(8, (3, 3))(image)
        states = linen.gelu(linen.BatchNorm(use_running_average=not train, momentum=0.9)(states))
        return linen.Dense(CLASSES)(states.mean((1, 2)))


NET = Net()


def in_linen() -> Any:
    def training(variables: Any, image: Any) -> Any:
        return NET.apply(variables, image, train=True, mutable=["batch_stats"])

    variables = NET.init(jax.random.key(0), _images())
    return NET.apply, variables, _images(), training


class NnxNet(nnx.Module):  # type: ignore[misc]
    def __init__(self, rngs: Any) -> None:
        self.first = nnx.Conv(3, 8, (3, 3), rngs=rngs)
        self.normalised = nnx.BatchNorm(8, momentum=0.9, rngs=rngs)
        self.head = nnx.Linear(8, CLASSES, rngs=rngs)

    def __call__(self, image: Any) -> Any:
        return self.head(jax.nn.gelu(self.normalised(self.first(image))).mean((1, 2)))


def in_nnx() -> Any:
    graph, params, stats = nnx.split(NnxNet(nnx.Rngs(0)), nnx.Param, nnx.BatchStat)

    def called(held: Any, image: Any, *, training: bool) -> Any:
        net = nnx.merge(graph, held["params"], held["stats"])
        net.train() if training else net.eval()
        return net(image), {"stats": nnx.state(net, nnx.BatchStat)}

    return (
        lambda held, image: called(held, image, training=False)[0],
        {"params": params, "stats": stats},
        _images(),
        lambda held, image: called(held, image, training=True),
    )
