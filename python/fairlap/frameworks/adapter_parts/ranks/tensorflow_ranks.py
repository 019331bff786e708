"""TensorFlow on several processes: a MultiWorkerMirroredStrategy, in which each rank is a worker with one device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from fairlap.frameworks.contract import RANKS, Collectives, Settings, Unsupported
from fairlap.request.fields.scale import Collective, Rank

_EXCHANGES = {"cpu": "RING", "cuda": "NCCL"}


@cache  # a process has one, made before any other operation
def strategy_of(rank: Rank, device: str) -> Any:
    """Make the strategy, and return when all ranks have their servers, at the addresses of the rank."""
    import tensorflow as tf

    if len(rank.addresses) != rank.count:
        raise Unsupported(f"tensorflow needs an address for each of {rank.count} ranks (got {len(rank.addresses)})")
    kind = device.partition(":")[0]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(  # what TF_CONFIG would say
        tf.train.ClusterSpec({"worker": list(rank.addresses)}),
        task_type="worker",
        task_id=rank.number,
        num_accelerators={} if kind == "cpu" else {"GPU": 1},
        rpc_layer="grpc",
    )
    implementation = getattr(tf.distribute.experimental.CommunicationImplementation, _EXCHANGES[kind])
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    return tf.distribute.MultiWorkerMirroredStrategy(resolver, options)


def mean_over_ranks(values: list[Any]) -> list[Any]:
    """Within ``strategy.run``: packed into few messages, as the strategy does."""
    import tensorflow as tf

    means: list[Any] = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, values)
    return means


def in_force(strategy: Any) -> dict[str, str]:
    over = strategy.extended._communication_options.implementation.value.lower()  # nothing public reports it
    return {RANKS: f"MultiWorkerMirroredStrategy, {over}, {strategy.num_replicas_in_sync} ranks"}


def collectives(wanted: Settings) -> Collectives:
    """Make collective operations as a graph under the strategy has them."""
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
