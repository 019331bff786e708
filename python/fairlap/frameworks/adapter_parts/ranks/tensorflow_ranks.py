"""TensorFlow on several processes: a MultiWorkerMirroredStrategy, in which each rank is a worker with one device."""

from __future__ import annotations

from functools import cache
from typing import Any

from fairlap.frameworks.contract import RANKS, Unsupported
from fairlap.request.scale import Rank

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
