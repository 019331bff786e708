"""The ten steps as a loop of TensorFlow around the network of one."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import tensorflow as tf
from fairlap.bench_models.ddim.spec import SCHEDULE, STEPS, look
from fairlap.bench_models.graphs import tensorflow_model
from fairlap.models.arrays import Arrays
from fairlap.models.sources.imported import IMPORTED, Imported


class Loop(tf.Module):
    def __init__(self, network: Any) -> None:
        super().__init__()
        self._network = network
        self.variables_by_name = network.variables_by_name

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        first, text = inputs["latent"], inputs["text"]
        every, of_latent, of_noise = (tf.constant(column, text.dtype) for column in zip(*SCHEDULE, strict=True))

        def step(number: Any, latent: Any) -> tuple[Any, Any]:
            features = tf.broadcast_to(every[number], (first.shape[0], every.shape[1]))
            (noise,) = self._network({"latent": latent, "features": features, "text": text})
            return number + 1, of_latent[number] * latent + of_noise[number] * noise

        whole = tf.while_loop(lambda number, _: number < STEPS, step, (tf.constant(0), first), maximum_iterations=STEPS)
        return (whole[1],)


class Implementation:
    ROUTE = IMPORTED

    def __init__(self, _spec: ModuleType) -> None:
        self._look = tensorflow_model.Implementation(look())

    def for_batch(self, batch: int) -> Built:
        return Built(self._look.for_batch(batch))


class Built:
    def __init__(self, network: Imported) -> None:
        self._network = network

    def build(self, weights: Arrays, dtype: Any) -> Loop:
        return Loop(self._network.build(weights, dtype))

    def canonical(self, name: str, array: Any) -> Any:
        return self._network.canonical(name, array)

    def hold_in(self, precision: Any) -> None:
        self._network.hold_in(precision)
