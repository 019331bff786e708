"""Which processes of others hold a GPU while contestants are measured on it, and whether they computed, by NVML.

Kernels of several processes take turns on a device for milliseconds at a time. With four other races on one H100, a
call of 20 us took 370 us.
"""

from __future__ import annotations

import os
import time
from typing import Any

from fairlap.machine.hardware.cuda_devices import Board, board_of, each_device
from fairlap.machine.hardware.gpu import NvmlAbsent, open_nvml, or_none
from fairlap.machine.programs.processes import process_ids, process_stat

HOLDING = "others on the device"  # how many processes of others held it
COMPUTING = "others computing on the device"  # how many of those NVML saw compute


class DeviceNeighbours:
    """Programs on the device, or on several ("cuda:0,cuda:1"), from the making of this object to ``readings``.

    Nothing is read of a processor, and nothing where NVML numbers processes in another way than this machine, as in a
    container with process ids of its own.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._since_us = int(1e6 * time.time())

    def readings(self) -> dict[str, float]:
        """Return them of the GPU on which most others were."""
        boards = () if self._device == "cpu" else map(board_of, each_device(self._device))
        whole = [board for board in boards if isinstance(board, Board) and board.is_whole]
        if not whole:
            return {}
        try:
            with open_nvml() as nvml:
                read = [self._of_board(nvml, board) for board in whole]
        except NvmlAbsent:
            return {}
        names = dict.fromkeys(name for each in read for name in each)
        return {name: max(each.get(name, 0.0) for each in read) for name in names}

    def _of_board(self, nvml: Any, board: Board) -> dict[str, float]:
        handle = or_none(nvml.nvmlDeviceGetHandleByIndex, board.index)
        listed = None if handle is None else or_none(nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
        holding, own = {process.pid for process in listed or ()}, own_processes()
        if not holding & own:
            return {}
        samples = or_none(nvml.nvmlDeviceGetProcessUtilization, handle, self._since_us) or ()
        computing = {each.pid for each in samples if each.smUtil and each.timeStamp >= self._since_us}
        return {HOLDING: float(len(holding - own)), COMPUTING: float(len((computing & holding) - own))}


def own_processes() -> set[int]:
    """Find this process and all that it started."""
    parents = {pid: stat.parent for pid in process_ids() if (stat := process_stat(pid)) is not None}
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return own
