"""Collective operations of ``torch.distributed``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.frameworks.adapter_parts.training.torch_ranks import join
from fairlap.frameworks.contract import RANKS, Collectives, Settings
from fairlap.request.scale import Collective


def collectives(wanted: Settings) -> Collectives:
    import torch.distributed as dist

    join(wanted)

    def bind(operation: Collective, array: Any, root: int) -> Callable[[], Any]:
        import torch

        tensor = torch.from_numpy(array).to(wanted.device)
        gathered = torch.zeros(dist.get_world_size() * tensor.numel(), dtype=tensor.dtype, device=tensor.device)

        def all_reduce() -> Any:
            dist.all_reduce(tensor)
            return tensor

        def all_gather() -> Any:
            dist.all_gather_into_tensor(gathered, tensor)
            return gathered

        def broadcast() -> Any:
            dist.broadcast(tensor, root)
            return tensor

        return {"all_reduce": all_reduce, "all_gather": all_gather, "broadcast": broadcast}[operation]

    in_force = {RANKS: f"torch.distributed, {dist.get_backend()}, {dist.get_world_size()} ranks"}
    return Collectives(bind, None, lambda result: result.cpu().numpy(), in_force)
