"""Who else is on a GPU, by a library that answers as NVML did on an H100."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import device_neighbours
from fairlap.meters.device_neighbours import COMPUTING, HOLDING, DeviceNeighbours, own_processes
from processes_seen import wait_until

OTHER, IDLE = 1077, 1078


class Library:
    """NVML's list of processes, and its samples of their use: a process that computes has newer ones than another."""

    def __init__(self, listed: list[int], used: dict[int, tuple[int, int]]) -> None:
        self._listed, self._used = listed, used

    def __getattr__(self, name: str) -> Any:
        return {
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetComputeRunningProcesses_v3": lambda _: [SimpleNamespace(pid=pid) for pid in self._listed],
            "nvmlDeviceGetProcessUtilization": lambda _, __: [
                SimpleNamespace(pid=pid, smUtil=share, timeStamp=at_us) for pid, (share, at_us) in self._used.items()
            ],
        }[name]

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def readings(monkeypatch: pytest.MonkeyPatch, listed: list[int], used: dict[int, tuple[int, int]]) -> dict[str, float]:
    monkeypatch.setattr(device_neighbours, "board_of", lambda _: Board(0))
    monkeypatch.setattr(device_neighbours, "open_nvml", lambda: Library(listed, used))
    return DeviceNeighbours("cuda:0").readings()


def test_those_that_hold_it_are_counted_apart_from_those_that_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    now_us, before_us = int(1e6 * (time.time() + 5)), int(1e6 * (time.time() - 5))
    own = os.getpid()
    found = readings(monkeypatch, [own, OTHER, IDLE], {OTHER: (18, now_us), IDLE: (26, before_us), own: (90, now_us)})
    assert found == {HOLDING: 2.0, COMPUTING: 1.0}
    assert readings(monkeypatch, [own], {own: (90, now_us)}) == {HOLDING: 0.0, COMPUTING: 0.0}


def test_nothing_is_known_where_nvml_has_other_process_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    assert readings(monkeypatch, [OTHER, IDLE], {}) == {}
    assert readings(monkeypatch, [], {}) == {}


def test_a_processor_is_no_device() -> None:
    assert DeviceNeighbours("cpu").readings() == {}


def test_what_this_process_started_is_its_own() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "import subprocess, sys; subprocess.run(['sleep', '60'])"], start_new_session=True
    ) as child:
        try:
            wait_until(lambda: own_processes() - {os.getpid(), child.pid})
            own = own_processes()
            assert {os.getpid(), child.pid} < own
            assert 1 not in own
        finally:
            os.killpg(child.pid, 9)
