"""JAX on several processes: a mesh of one device of each, over which a step of training is mapped.

Every rank runs the same program on arrays that are spread over the mesh, and holds its own shard of each: a part of the
batch, or a copy of the state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from fairlap.frameworks.contract import RANKS, Collectives, Settings, Unsupported, device_number
from fairlap.request.fields.scale import LOOPBACK, Collective, Rank

_AXIS = "ranks"


def join(rank: Rank, device: str) -> None:
    """Before any backend of JAX starts, because it is then that those of all processes find each other."""
    import jax

    if jax.distributed.is_initialized():
        return
    on_cpu = device == "cpu"
    if on_cpu:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        rank.coordinator,
        rank.count,
        rank.number,
        local_device_ids=None if on_cpu else [device_number(device)],  # the process then sees no other
        coordinator_bind_address=_listening_at(rank.coordinator),
        cluster_detection_method="deactivate",
    )


def _listening_at(coordinator: str) -> str:
    """By default JAX listens on every interface, which only ranks on other hosts need.

    Not at the name of this host then: many systems map that to their own loopback, where others do not reach it.
    """
    host, _, port = coordinator.rpartition(":")
    return coordinator if host == LOOPBACK else f"[::]:{port}"


class RankMesh:
    """The ranks, as one of them sees them. ``device`` is its own.

    Raises Unsupported where some rank has no such device: it would compute on its processor.
    """

    def __init__(self, device: Any) -> None:
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        first = {each.process_index: each for each in reversed(jax.devices(device.platform))}
        if len(first) != jax.process_count():
            lacking = sorted(set(range(jax.process_count())) - set(first))
            raise Unsupported(f"of {jax.process_count()} ranks, {lacking} show no device of platform {device.platform}")
        self._mesh = Mesh(np.array([first[process] for process in sorted(first)]), (_AXIS,))
        self._copies, self._parts = PartitionSpec(), PartitionSpec(_AXIS)
        self._as_copies, self._as_parts = (NamedSharding(self._mesh, each) for each in (self._copies, self._parts))
        self._device = device

    def mapped(self, step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Map a function of the state, which all ranks have, and of the batch, of which each has its part."""
        import jax

        spread = (self._copies, self._parts)
        # If it tracked which values differ between ranks, it would already add up the gradients of what all have.
        mapped: Callable[[Any, Any], Any] = jax.shard_map(
            step, mesh=self._mesh, in_specs=spread, out_specs=self._copies, check_vma=False
        )
        return mapped

    def mean(self, values: Any) -> Any:
        """Over all ranks, within what is mapped."""
        import jax

        return jax.lax.pmean(values, _AXIS)

    def operation(self, operation: Collective, root: int) -> Callable[[Any, Any], Any]:
        """Make a collective operation to be mapped, of an array of which each rank has its own."""
        import jax

        def all_gather(_: Any, own: Any) -> Any:
            return jax.lax.all_gather(own, _AXIS, tiled=True)

        def all_reduce(_: Any, own: Any) -> Any:
            return jax.lax.psum(own, _AXIS)

        def broadcast(_: Any, own: Any) -> Any:
            return jax.lax.psum(jax.numpy.where(jax.lax.axis_index(_AXIS) == root, own, 0), _AXIS)

        return {"all_gather": all_gather, "all_reduce": all_reduce, "broadcast": broadcast}[operation]

    def copied(self, own: Any) -> Any:
        """Arrays that are the same in every rank, given those of this one."""
        return self._spread(own, self._as_copies, 1)

    def joined(self, part: Any) -> Any:
        """Join the parts of all ranks to one batch, given this rank's part; all parts have the same size."""
        return self._spread(part, self._as_parts, self._mesh.size)

    def own(self, spread: Any) -> Any:
        """Take this rank's copies, which it can compute with alone."""
        import jax

        return jax.tree.map(lambda array: array.addressable_data(0), spread)

    @property
    def in_force(self) -> str:
        import jax

        # XLA has one way between processes on GPUs, and on processors what it was configured with.
        over = jax.config.values["jax_cpu_collectives_implementation"] if self._device.platform == "cpu" else "nccl"
        return f"shard_map, {over}, {self._mesh.size} ranks"

    def _spread(self, arrays: Any, sharding: Any, parts: int) -> Any:
        import jax

        def whole(array: Any) -> Any:
            shape = (parts * array.shape[0], *array.shape[1:]) if parts > 1 else array.shape
            return jax.make_array_from_single_device_arrays(shape, sharding, [jax.device_put(array, self._device)])

        return jax.tree.map(whole, arrays)


def collectives(wanted: Settings, own_device: Callable[[], Any]) -> Collectives:
    """Compile collective operations over the mesh.

    JAX has no broadcast for arrays of processes: like ``multihost_utils.broadcast_one_to_all``, this one adds up the
    array of one rank and zeros of the others.
    """
    import jax

    assert wanted.rank is not None
    join(wanted.rank, wanted.device)
    mesh = RankMesh(own_device())
    nothing = mesh.copied(np.zeros((), np.float32))

    @cache
    def compiled(operation: Collective, root: int) -> Any:
        return jax.jit(mesh.mapped(mesh.operation(operation, root)))

    def bind(operation: Collective, array: Any, root: int) -> Callable[[], Any]:
        return partial(compiled(operation, root), nothing, mesh.joined(array))

    return Collectives(
        bind,
        jax.block_until_ready,
        lambda result: np.asarray(mesh.own(result)),
        {RANKS: mesh.in_force},
        jax.distributed.shutdown,
    )
