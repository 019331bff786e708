"""Collective operations of TensorFlow, as a graph under MultiWorkerMirroredStrategy has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from fairlap.frameworks.adapter_parts.ranks.tensorflow_ranks import in_force, strategy_of
from fairlap.frameworks.contract import Collectives, Settings, Unsupported
from fairlap.request.scale import Collective


def collectives(wanted: Settings) -> Collectives:
    import tensorflow as tf

    assert wanted.rank is not None
    strategy = strategy_of(wanted.rank, wanted.device)

    @cache
    def traced(operation: Collective, elements: int) -> Any:
        def exchanged(own: Any) -> Any:
            context, own = tf.distribute.get_replica_context(), tf.identity(own)  # an argument has no device
            if operation == "all_gather":
                return context.all_gather(own, axis=0)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

        function = tf.function(lambda own: strategy.run(exchanged, (own,)), autograph=False)
        return function.get_concrete_function(tf.TensorSpec((elements,), tf.float32))

    def bind(operation: Collective, array: Any, root: int) -> Callable[[], Any]:
        if operation == "broadcast":
            raise Unsupported("tf.distribute has no broadcast that its users could call")
        return partial(traced(operation, array.size), tf.constant(array))

    return Collectives(bind, None, lambda result: result.numpy(), in_force(strategy))
