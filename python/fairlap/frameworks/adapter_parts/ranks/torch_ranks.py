"""PyTorch on several processes: DistributedDataParallel, ``fully_shard`` (FSDP) and collective operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.frameworks.contract import RANKS, Collectives, Settings, Unsupported
from fairlap.request.fields.scale import Collective

FSDP = "fsdp"

_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def join(wanted: Settings) -> None:
    """Meet the other ranks at torchrun's address.

    Nothing leaves the group: a worker ends without exit handlers, and destroying a group while another rank still uses
    it can abort the process.
    """
    import torch.distributed as dist

    kind = wanted.device.partition(":")[0]
    if not dist.is_available():
        raise Unsupported("this build of PyTorch has no torch.distributed")
    if wanted.device != "cpu":
        import torch

        torch.cuda.set_device(wanted.device)
    dist.init_process_group(_BACKENDS[kind])


def undivided(wanted: Settings) -> str:
    """How a contestant exchanges that is one process; empty where its name promises nothing else."""
    return "one process: fully_shard is not used, nothing is divided" if wanted.variant == FSDP else ""


def shared(model: Any, wanted: Settings) -> tuple[Any, str]:
    """Wrap the model for its ranks, and describe how it exchanges, read back.

    The model's own parameters get the averaged gradients; ``fully_shard`` also divides them among the ranks.
    """
    import torch.distributed as dist

    if wanted.variant == FSDP:
        how, called = _sharded(model, wanted), model
    else:
        from torch.nn.parallel import DistributedDataParallel

        called = DistributedDataParallel(model)
        how = type(called).__name__
    return called, f"{how}, {dist.get_backend()}, {dist.get_world_size()} ranks"


def _sharded(model: Any, wanted: Settings) -> str:
    """As users write it: each item of the lists of layers is gathered by itself, the rest with the model."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard
    from torch.nn import ModuleList

    mesh = init_device_mesh(wanted.device.partition(":")[0], (dist.get_world_size(),))
    layers = [layer for held in model.modules() if isinstance(held, ModuleList) for layer in held]
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    modules = sum(isinstance(each, FSDPModule) for each in model.modules())
    return f"fully_shard of {modules} module{'s' * (modules != 1)}"


def whole(tensor: Any) -> Any:
    """Of a tensor that may be divided among ranks, which then all have to ask for it."""
    from torch import distributed as dist

    if dist.is_available() and dist.is_initialized():
        from torch.distributed.tensor import DTensor

        if isinstance(tensor, DTensor):
            return tensor.full_tensor()
    return tensor


def divided_as(held: Any, tensor: Any) -> Any:
    """Divide a whole tensor among ranks where ``held`` is divided; all of them have to ask for it."""
    from torch import distributed as dist

    if dist.is_available() and dist.is_initialized():
        from torch.distributed.tensor import DTensor, distribute_tensor

        if isinstance(held, DTensor):
            return distribute_tensor(tensor.to(held.device), held.device_mesh, held.placements)
    return tensor


def own_bytes(tensor: Any) -> int:
    """Of a divided tensor, the part that is here."""
    to_local: Callable[[], Any] | None = getattr(tensor, "to_local", None)
    return int((tensor if to_local is None else to_local()).nbytes)


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
