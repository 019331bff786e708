"""TensorFlow on several processes: a MultiWorkerMirroredStrategy, in which each rank is a worker with one device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from fairlap.frameworks.contract import RANKS, Collectives, Settings, Unsupported
from fairlap.request.fields.scale import Collective, Rank

_EXCHANGES = {"cpu": "RING", "cuda": "NCCL"}
_KINDS = {"cpu": "CPU", "cuda": "GPU"}


@cache  # a process has one, made before any other operation
def strategy_of(rank: Rank, device: str) -> Any:
    """Make the strategy, and return when all ranks have their servers, at the addresses of the rank.

    Raises Unsupported where it has other devices: TensorFlow only warns where it is asked for NCCL and finds no GPU.
    """
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
    strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver, options)
    require_devices(strategy, kind)
    return strategy


def require_devices(strategy: Any, kind: str) -> None:
    """Check that this rank has one device of this kind, and for a GPU a build with NCCL.

    The strategy names what it was asked for, so its device must also be among those that TensorFlow has.
    """
    import tensorflow as tf

    there = [each.name for each in tf.config.list_logical_devices(_KINDS[kind])]
    own = list(strategy.extended.worker_devices)
    if len(own) != 1 or own[0] not in there or (kind != "cpu" and not tf.test.is_built_with_cuda()):
        raise Unsupported(
            f"on {kind} ranks exchange over {_EXCHANGES[kind]}, each on one {_KINDS[kind]}; this one was to work on "
            f"{', '.join(own) or 'nothing'}, and TensorFlow has {', '.join(there) or 'none'}"
        )


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
