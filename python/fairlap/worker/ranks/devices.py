"""Which GPU each rank has. It sees no other, so that it cannot work or take memory on another rank's.

A rank hides the others from itself before anything loads the driver, because torchrun starts all ranks of a host with
one environment. Frameworks then know the GPU of every rank as ``cuda:0``.

A rank imports this module first, so it must stay light.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from fairlap.worker.ranks.placement import Place

DEVICES = "FAIRLAP_DEVICES_OF_RANKS"
"""That of rank 0, of rank 1 and so on: ``GPU-<UUID>/GPU-<UUID>``, or ``cuda:0/cuda:1`` where UUIDs are not known."""

OWN = "cuda:0"
"""The device of a rank, which is the only one that it sees."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
_NUMBERED = "cuda"


@dataclass(frozen=True)
class RankDevices:
    """The device of each rank, in order of their numbers; none where ranks run on processors."""

    by_rank: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        return {DEVICES: "/".join(self.by_rank)} if self.by_rank else {}

    @property
    def whole_gpus(self) -> str:
        """Name them by UUID, as the energy of all of them is read; empty where one is not known or is a part of one."""
        return ",".join(self.by_rank) if all(each.startswith("GPU-") for each in self.by_rank) else ""


def devices_for(devices: Sequence[str], places: Sequence[Place]) -> RankDevices:
    """Deal them out: the first rank of each host gets the first one.

    Those of this machine are named by what the driver says. Raises Unsupported where it lacks one, or where two are
    parts of one GPU, which NCCL does not connect.
    """
    if not devices:
        return RankDevices()
    own = [name for place in places for name in _names(devices[: place.ranks], is_here=place.is_here)]
    return RankDevices(tuple(own))


def _names(devices: Sequence[str], *, is_here: bool) -> Sequence[str]:
    from fairlap.frameworks.contract import Unsupported
    from fairlap.machine.hardware.cuda_devices import visible_devices

    seen = visible_devices() if is_here else ""
    if isinstance(seen, str):
        return devices
    if missing := [each for each in devices if _number(each) >= len(seen)]:
        raise Unsupported(f"CUDA shows {len(seen)} devices here; {', '.join(missing)} is not among them")
    found = [seen[_number(each)] for each in devices]
    if len({each.address for each in found}) < len(found):
        raise Unsupported(f"{', '.join(devices)} are parts of fewer GPUs, and each rank needs a separate one")
    return [each.name for each in found]


def see_own_device(rank: int) -> None:
    """Hide the devices of the other ranks from this process, before anything loads the driver."""
    own = _own(rank)
    if not own.startswith(_NUMBERED):
        os.environ.update({VISIBLE: own} if own else {})
        return
    shown = os.environ.get(VISIBLE, "")
    number = _number(own)
    listed = shown.split(",") if shown else [str(each) for each in range(number + 1)]
    os.environ[VISIBLE] = listed[number] if number < len(listed) else ""


def device_in_force(rank: int) -> dict[str, str]:
    """Read back from the driver which GPU this rank has; nothing of one on a processor.

    Raises Unsupported where it sees another one, or more than one.
    """
    own = _own(rank)
    if not own:
        return {}
    from fairlap.engine import _native
    from fairlap.frameworks.contract import Unsupported

    seen = [uuid for _, uuid in _native.cuda_device_identities()]
    wanted = [own.partition("-")[2]] if not own.startswith(_NUMBERED) else seen[:1]
    if not seen or seen != wanted:
        raise Unsupported(f"rank {rank} was given {own} alone, and the driver shows it {', '.join(seen) or 'none'}")
    return {"gpu": seen[0]}


def _number(device: str) -> int:
    return int(device.partition(":")[2] or 0)


def _own(rank: int) -> str:
    by_rank = os.environ.get(DEVICES, "")
    return by_rank.split("/")[rank] if by_rank else ""
