"""The ten steps as a loop of JAX around the network of one."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax.numpy as jnp
from fairlap.bench_models.ddim.spec import SCHEDULE, look
from fairlap.bench_models.graphs import jax_model
from fairlap.models.arrays import Arrays
from fairlap.models.sources.imported import IMPORTED, Imported
from jax import lax


class Implementation:
    ROUTE = IMPORTED

    def __init__(self, _spec: ModuleType) -> None:
        self._look = jax_model.Implementation(look())

    def for_batch(self, batch: int) -> Loop:
        return Loop(self._look.for_batch(batch))


class Loop:
    def __init__(self, network: Imported) -> None:
        self._network = network

    def params(self, weights: Arrays) -> dict[str, Any]:
        return self._network.params(weights)

    def canonical(self, params: dict[str, Any]) -> Any:
        return self._network.canonical(params)

    def hold_in(self, precision: Any) -> None:
        self._network.hold_in(precision)

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
        text = inputs["text"]

        def step(latent: Any, each: Any) -> tuple[Any, None]:
            features, of_latent, of_noise = each
            features = jnp.broadcast_to(features, (len(latent), len(features)))
            (noise,) = self._network.forward(params, {"latent": latent, "features": features, "text": text})
            return of_latent * latent + of_noise * noise, None

        columns = (jnp.asarray(column, text.dtype) for column in zip(*SCHEDULE, strict=True))
        return (lax.scan(step, inputs["latent"], tuple(columns))[0],)
