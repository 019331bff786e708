"""Memory by layer and by phase, as a worker reports it: each layer has bytes or a reason."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fairlap.frameworks.contract import Contestant
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_process import WorkerProcess
from fairlap.meters import memory as own_memory
from fairlap.meters.memory import LAYERS, Memory, MemoryMeter
from watched_machine import NO_NVML, fake_nvml_path, fresh_fake_nvml
from workers_of_fake import Files, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are those of Linux")
MIB = 2**20


def memory_of_worker(tmp_path: Path, variant: str) -> Memory:
    files = Files(tmp_path).write()
    with WorkerProcess(python_worker(), environment=environment()) as worker:
        worker.prepare(files.request(variant), within_s=60)
        worker.answer("inputs", tmp_path / "answer.safetensors", within_s=60)
        worker.measure(samples=10, warmup=1, calls_per_sample=1, within_s=60)
        return worker.quit().memory


def contestant(**changes: Any) -> Contestant:
    return cast(Contestant, SimpleNamespace(**{
        "memory_bytes": None, "no_memory_because": "", "forget_memory_peak": None, "training": None,
        "peak_of_runs": None, "cache_bytes": None, "stamps": None, **changes,
    }))  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Of a worker that takes no memory on purpose."""
    return memory_of_worker(tmp_path_factory.mktemp("plain"), "")


def test_memory_of_the_preparation_is_only_in_the_peak_until_ready(tmp_path: Path) -> None:
    memory = memory_of_worker(tmp_path, "pass_through_memory@build").bytes
    assert memory["peak_until_ready"] - memory["peak_while_running"] > 150 * MIB
    assert memory["peak"] == memory["peak_until_ready"]


def test_the_peak_of_the_first_call_is_in_the_peak_until_ready(tmp_path: Path, plain: Memory) -> None:
    memory = memory_of_worker(tmp_path, "pass_through_memory@bind").bytes
    assert memory["peak_until_ready"] - plain.bytes["peak_until_ready"] > 150 * MIB


def test_shared_memory_is_a_separate_layer(tmp_path: Path) -> None:
    memory = memory_of_worker(tmp_path, "share_memory@build").bytes
    assert memory["shared"] == memory["shared_when_ready"] == pytest.approx(50 * MIB, rel=0.02)
    assert memory["anonymous"] > MIB
    assert memory["peak_while_running"] >= memory["anonymous"] + memory["shared"]


def test_living_children_are_added_up(tmp_path: Path, plain: Memory) -> None:
    assert plain.bytes["children_peak"] == 0
    assert memory_of_worker(tmp_path, "keep_a_large_child@build").bytes["children_peak"] > 60 * MIB


def test_every_layer_has_either_bytes_or_a_reason(plain: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain.bytes["allocator_live"] == 12
    unknown = {"driver", "allocator_reserved", "allocator_live_peak_until_ready", "largest_ended_child_peak"}
    assert unknown <= set(plain.absent)
    monkeypatch.setattr(own_memory, "memory_of", lambda pid="self": {})
    monkeypatch.setattr(own_memory, "proportional", dict)
    silent = MemoryMeter("cpu")
    silent.ran(contestant(no_memory_because="it counts none"))
    memory = silent.result()
    assert memory.absent["allocator_live"] == memory.absent["allocator_live_peak_until_ready"] == "it counts none"
    assert {"proportional", "peak", "file_when_ready"} <= set(memory.absent)
    for each in (plain, memory):
        assert set(LAYERS) == set(each.bytes) | set(each.absent)
        assert not set(each.bytes) & set(each.absent)
        assert all(each.absent.values())


def test_what_is_read_at_the_end_is_not_changed_by_what_runs_later() -> None:
    """A client's own memory would otherwise appear as that of the work, which is done elsewhere."""
    meter = MemoryMeter("cpu")
    meter.prepared("it runs elsewhere")
    meter.ran(contestant())
    read = meter.result()
    meter.ran(contestant())
    assert not {"anonymous", "address_space_peak", "peak"} & {*read.bytes}
    assert read.absent["anonymous"] == "it runs elsewhere"


def test_the_page_about_memory_lists_every_layer_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/measure-memory.md").read_text()
    table = page.partition("| layer in `memory_bytes` |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(LAYERS)


def measured(meter: MemoryMeter, allocating: Contestant) -> Memory:
    meter.prepared()
    meter.before_first_call()
    meter.ready(allocating)
    meter.before_running(allocating)
    meter.ran(allocating)
    return meter.result()


def test_a_peak_that_cannot_be_reset_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_memory, "reset_peak", lambda pid="self": "not allowed")
    memory = measured(MemoryMeter("cpu"), contestant())
    assert "peak_while_running" not in memory.bytes
    assert memory.absent["peak_while_running"] == memory.absent["peak_of_first_call"] == "not allowed"
    assert memory.bytes["peak"] == memory.bytes["peak_until_ready"] > 0


def test_an_allocators_peaks_are_separate_by_phase_where_they_can_be_reset() -> None:
    held = {"live_peak": 900}

    def forget() -> None:
        held["live_peak"] = 100

    memory = measured(MemoryMeter("cpu"), contestant(memory_bytes=lambda: dict(held), forget_memory_peak=forget))
    peaks = [memory.bytes[f"allocator_live_peak{phase}"] for phase in ("_until_ready", "")]
    assert peaks == [900, 100]
    assert {"allocator_reserved", "allocator_live_until_ready"} <= set(memory.absent)


@pytest.fixture
def memory_used(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set what is used of the fake NVML's first device, which has 16 GiB."""
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    fake = fresh_fake_nvml()
    return lambda used: fake.fake_nvml_set_reading(0, b"memory_used", used)


def test_the_drivers_layer_is_what_is_taken_from_the_device_since_the_start(memory_used: Callable[[int], None]) -> None:
    memory_used(300 * MIB)
    meter = MemoryMeter("cuda:0")
    memory_used(1000 * MIB)
    assert measured(meter, contestant()).bytes["driver"] == 700 * MIB
    meter = MemoryMeter("cuda:0")
    memory_used(300 * MIB)
    memory = measured(meter, contestant())
    assert ("driver" in memory.bytes, "driver" in memory.absent) == (False, True)


def test_without_nvidias_driver_its_layer_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBNVML", NO_NVML)
    assert NO_NVML in measured(MemoryMeter("cuda:0"), contestant()).absent["driver"]
