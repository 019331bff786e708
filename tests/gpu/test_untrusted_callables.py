"""Callables that are not trusted, on a device that goes on while their process is stopped.

Only a device shows that memory of two processes can be opened inside the sandbox, that work left behind delays a kernel
of another process by a turn of a millisecond or more, and what the ring costs there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TASK = """
import torch

def draw(rng):
    return torch.from_numpy(rng.standard_normal((512, 1024), dtype="float32"))

def reference(x):
    return torch.softmax(x, dim=1)
"""
CALLABLES = """
import gc
import torch

side = torch.cuda.Stream()
answers = []

def plain(x):
    return torch.softmax(x, dim=1)

def on_a_side_stream(x):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        return torch.softmax(x, dim=1)

def stop_waiting():
    torch.cuda.synchronize = lambda *_: None
    for each in gc.get_objects():
        if type(each).__name__ == "DeviceSlots":
            each._wait = lambda *_: None

def returns_early(x):
    stop_waiting()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        answers.append(torch.softmax(x, dim=1))
    return answers[-1]

def writes_later(x):
    stop_waiting()
    result = torch.empty_like(x)
    for each in gc.get_objects():
        if type(each).__name__ == "DeviceSlots":
            kept = [slot[0] for slot in each._kept]
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        for into in kept:
            into.copy_(torch.softmax(x, dim=1))
    return result

def leaves_a_kernel(x):
    found = torch.softmax(x, dim=1)
    torch.cuda.synchronize()
    stop_waiting()
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000_000)
    return found

def previous(x):
    if not answers:
        answers.append(torch.softmax(x, dim=1))
    return answers[0]
"""
EXCLUDED = {
    "returns_early": {"E_DEFERRED_WORK", "E_OUTPUT"},
    "writes_later": {"E_DEFERRED_WORK", "E_OUTPUT"},
    "leaves_a_kernel": {"E_LEFT_RUNNING"},
    "previous": {"E_OUTPUT"},
}
Race = Callable[..., Any]


@pytest.fixture
def race(torch: Any, tmp_path: Path) -> Race:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/callables.py").write_text(CALLABLES)

    def raced(*names: str) -> Any:
        files = [f"{tmp_path}/theirs/callables.py:{name}" for name in names]
        given = ["--reference", f"{tmp_path}/task.py:reference", "--inputs", f"{tmp_path}/task.py:draw"]
        command = [sys.executable, "-m", "fairlap", "time", *files, "--untrusted", "--device", "cuda:0", *given]
        done = subprocess.run(
            [*command, "--blocks", "6", "--json"], capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    return raced


def test_honest_callables_are_ranked_and_the_floor_is_stated(race: Race, record_property: Callable[..., None]) -> None:
    found = race("plain", "on_a_side_stream")
    assert found["excluded"] == {}
    assert found["floor_ns"] > 0
    record_property("floor of a call, ns", found["floor_ns"])
    record_property("ring, ns", found["ring_ns"])


@pytest.mark.parametrize("name", EXCLUDED)
def test_a_callable_that_pretends_is_excluded(race: Race, name: str) -> None:
    found = race(name, "plain")
    [(_, why)] = found["excluded"].items()
    assert why["code"] in EXCLUDED[name], why
    assert [row["name"].rpartition(":")[2] for row in found["rows"]] == ["plain"]


def test_work_that_another_process_has_on_the_device_is_seen(torch: Any) -> None:
    from fairlap.scenarios.callables.untrusted.on_device.referee_device import RefereeDevice

    device = RefereeDevice("cuda:0")
    assert all(device.is_idle() for _ in range(20))
    busy = "import torch; print(flush=True)\nwhile True: torch.cuda._sleep(100_000_000)"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        torch.cuda._sleep(2_000_000_000)  # until the other one is at work
        torch.cuda.synchronize()
        seen = [device.is_idle() for _ in range(20)]
        other.kill()
    assert sum(seen) <= 2
