"""PyTorch on several processes: DistributedDataParallel, ``fully_shard`` (FSDP) and collective operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from fairlap.frameworks.contract import RANKS, Collectives, Settings, Unsupported
from fairlap.request.fields.scale import Collective

FSDP = "fsdp"

_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}
_LONGEST_EXCHANGE = timedelta(minutes=30)  # PyTorch's own for gloo; for NCCL it has ten minutes


def join(wanted: Settings) -> None:
    """Meet the other ranks at torchrun's address, bound to this rank's GPU where it has one.

    The backend is named: PyTorch would choose NCCL for tensors on a GPU and gloo besides, for those in host memory.
    Nothing leaves the group: a worker ends without exit handlers, and destroying a group while another rank still uses
    it can abort the process.
    """
    import torch.distributed as dist

    if not dist.is_available():
        raise Unsupported("this build of PyTorch has no torch.distributed")
    if not dist.is_backend_available(_backend(wanted)):
        raise Unsupported(
            f"this build of PyTorch has no {_backend(wanted)}, by which ranks on {_kind(wanted)} exchange"
        )
    own = None
    if wanted.device != "cpu":
        import torch

        own = torch.device(wanted.device)
        torch.cuda.set_device(own)
    dist.init_process_group(_backend(wanted), timeout=_LONGEST_EXCHANGE, device_id=own)


def _kind(wanted: Settings) -> str:
    return wanted.device.partition(":")[0]


def _backend(wanted: Settings) -> str:
    return _BACKENDS[_kind(wanted)]


def exchange_in_force(tensors: Iterable[Any], wanted: Settings) -> str:
    """Read back over what these tensors are exchanged, among how many.

    Raises Unsupported for a rank that exchanges over something else, or whose tensors are on another kind of device.
    """
    import torch.distributed as dist

    over, kinds = dist.get_backend(), {tensor.device.type for tensor in tensors}
    if over != _backend(wanted) or kinds - {_kind(wanted)}:
        raise Unsupported(
            f"on {_kind(wanted)} ranks exchange over {_backend(wanted)}; this one has {over}, and its tensors are on "
            f"{' and '.join(sorted(kinds))}"
        )
    return f"{over}, {dist.get_world_size()} ranks"


def undivided(wanted: Settings) -> str:
    """How a contestant exchanges that is one process; empty where its name promises nothing else."""
    return "one process: fully_shard is not used, nothing is divided" if wanted.variant == FSDP else ""


def shared(model: Any, wanted: Settings) -> tuple[Any, str]:
    """Wrap the model for its ranks, and describe how it exchanges, read back.

    The model's own parameters get the averaged gradients; ``fully_shard`` also divides them among the ranks.
    """
    if wanted.variant == FSDP:
        how, called = _sharded(model, wanted), model
    else:
        from torch.nn.parallel import DistributedDataParallel

        called = DistributedDataParallel(model)
        how = type(called).__name__
    return called, f"{how}, {exchange_in_force(model.parameters(), wanted)}"


def _sharded(model: Any, wanted: Settings) -> str:
    """As users write it: each item of the lists of layers is gathered by itself, the rest with the model."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard
    from torch.nn import ModuleList

    mesh = init_device_mesh(_kind(wanted), (dist.get_world_size(),))
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

    in_force = {RANKS: f"torch.distributed, {exchange_in_force((), wanted)}"}
    return Collectives(bind, None, lambda result: result.cpu().numpy(), in_force)
