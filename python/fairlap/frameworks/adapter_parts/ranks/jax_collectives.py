"""Collective operations of JAX, each compiled over the mesh of all ranks.

JAX has no broadcast for arrays of processes: like ``multihost_utils.broadcast_one_to_all`` it adds up the array of one
rank and zeros of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.ranks.jax_ranks import RankMesh, join
from fairlap.frameworks.contract import RANKS, Collectives, Settings
from fairlap.request.scale import Collective


def collectives(wanted: Settings, own_device: Callable[[], Any]) -> Collectives:
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
