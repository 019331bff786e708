"""Memory by layer and by phase, as a worker tells it: what is known has bytes, what is not says why."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fairlap.frameworks.contract import Contestant
from fairlap.launch.worker_process import WorkerProcess, python_worker
from fairlap.meters import memory as own_memory
from fairlap.meters.memory import LAYERS, Memory, MemoryByLayer
from workers_of_fake import Files, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are those of Linux")
MIB = 2**20
FAKES = Path(os.environ.get("FAIRLAP_FAKES", Path(__file__).parents[3] / "build/release/cpp/fakes"))


def told_by(tmp_path: Path, variant: str) -> Memory:
    files = Files(tmp_path).write()
    with WorkerProcess(python_worker(), environment=environment()) as worker:
        worker.prepare(files.request(variant), within_s=20)
        worker.answer("inputs", tmp_path / "answer.safetensors", within_s=20)
        worker.measure(samples=10, warmup=1, calls_per_sample=1, within_s=20)
        return worker.quit().memory


def contestant(**changes: Any) -> Contestant:
    return cast(Contestant, SimpleNamespace(**{
        "memory_bytes": None, "no_memory_because": "", "forget_memory_peak": None, **changes
    }))  # fmt: skip


def test_memory_that_only_the_preparation_took_is_in_the_peak_until_ready_alone(tmp_path: Path) -> None:
    memory = told_by(tmp_path, "pass_through_memory@build").bytes
    assert memory["peak_until_ready"] - memory["peak_while_running"] > 150 * MIB
    assert memory["peak"] == memory["peak_until_ready"]


def test_the_peak_of_the_first_call_belongs_to_the_time_until_it_is_ready(tmp_path: Path) -> None:
    memory = told_by(tmp_path, "pass_through_memory@bind").bytes
    plain = told_by(tmp_path, "").bytes
    assert memory["peak_until_ready"] - plain["peak_until_ready"] > 150 * MIB


def test_shared_memory_is_told_apart_from_the_processs_own(tmp_path: Path) -> None:
    memory = told_by(tmp_path, "share_memory@build").bytes
    assert memory["shared"] == memory["shared_when_ready"] == pytest.approx(50 * MIB, rel=0.02)
    assert memory["anonymous"] > MIB
    assert memory["peak_while_running"] >= memory["anonymous"] + memory["shared"]


def test_children_that_live_are_added_up(tmp_path: Path) -> None:
    assert told_by(tmp_path, "").bytes["children_peak"] == 0
    assert told_by(tmp_path, "keep_a_large_child@build").bytes["children_peak"] > 60 * MIB


def test_a_layer_without_a_figure_says_why(tmp_path: Path) -> None:
    ended = told_by(tmp_path, "")
    assert ended.absent["driver"] == "the work ran on the processor"
    assert ended.bytes["allocator_live"] == 12
    assert "cannot be begun anew" in ended.absent["allocator_live_peak_until_ready"]
    assert ended.absent["allocator_reserved"] == "its allocator does not tell it"
    assert ended.absent["largest_ended_child_peak"] == "no child has ended that was larger than fairlap's own"
    memory = MemoryByLayer("cpu")
    memory.ran(contestant(no_memory_because="it counts none"))
    assert memory.told()[1]["allocator_live_peak_until_ready"] == "it counts none"
    memory.ran(contestant())
    assert memory.told()[1]["allocator_live"] == "its adapter tells nothing of its allocator"


def test_every_layer_has_either_bytes_or_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = told_by(tmp_path, "")
    assert set(LAYERS) == set(memory.bytes) | set(memory.absent)
    assert not set(memory.bytes) & set(memory.absent)
    monkeypatch.setattr(own_memory, "memory_of", lambda pid="self": {})
    monkeypatch.setattr(own_memory, "proportional", dict)
    silent = MemoryByLayer("cpu")
    silent.ran(contestant())
    told, absent = silent.told()
    assert set(LAYERS) == set(told) | set(absent)
    assert absent["proportional"] == absent["peak"] == absent["file_when_ready"] == "this system does not tell it"


def test_the_page_about_memory_lists_every_layer_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/measure-memory.md").read_text()
    table = page.partition("| layer in `memory_bytes` |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(LAYERS)


def test_a_peak_that_cannot_be_begun_anew_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_memory, "reset_peak", lambda pid="self": "clear_refs could not be written")
    memory = MemoryByLayer("cpu")
    memory.prepared()
    memory.before_first_call()
    memory.ready(contestant())
    memory.before_running(contestant())
    memory.ran(contestant())
    told, absent = memory.told()
    assert "peak_while_running" not in told
    assert absent["peak_while_running"] == absent["peak_of_first_call"] == "clear_refs could not be written"
    assert told["peak"] == told["peak_until_ready"] > 0


def test_an_allocators_peaks_are_kept_by_phase_where_they_can_be_begun_anew() -> None:
    held = {"live_peak": 900}

    def forget() -> None:
        held["live_peak"] = 100

    memory = MemoryByLayer("cpu")
    allocating = contestant(memory_bytes=lambda: dict(held), forget_memory_peak=forget)
    memory.ready(allocating)
    memory.before_running(allocating)
    memory.ran(allocating)
    told, absent = memory.told()
    assert (told["allocator_live_peak_until_ready"], told["allocator_live_peak"]) == (900, 100)
    assert not {"allocator_live_peak_until_ready", "allocator_live_peak"} & set(absent)
    assert absent["allocator_reserved"] == absent["allocator_live_until_ready"] == "its allocator does not tell it"


@pytest.fixture
def set_reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, int], None]:
    """Of the fake NVML's first device, which has 16 GiB."""
    library = FAKES / "libfairlap_fake_nvml.so"
    assert library.exists(), f"{library} is missing; `make test` builds it"
    monkeypatch.setenv("FAIRLAP_LIBNVML", str(library))
    fake = ctypes.CDLL(str(library))
    fake.fake_nvml_reset()

    def put(reading: bytes, value: int) -> None:
        assert fake.fake_nvml_set_reading(0, reading, ctypes.c_uint64(value))

    return put


def test_the_drivers_layer_is_what_went_from_the_device_since_the_start(
    set_reading: Callable[[bytes, int], None],
) -> None:
    set_reading(b"memory_used", 300 * MIB)
    memory = MemoryByLayer("cuda:0")
    set_reading(b"memory_used", 1000 * MIB)
    memory.ran(contestant())
    assert memory.told()[0]["driver"] == 700 * MIB
    memory = MemoryByLayer("cuda:0")
    set_reading(b"memory_used", 300 * MIB)
    memory.ran(contestant())
    told, absent = memory.told()
    assert "driver" not in told
    assert "others gave memory" in absent["driver"]


def test_without_a_driver_its_layer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBNVML", "/nowhere/nvml.so")
    memory = MemoryByLayer("cuda:0")
    memory.ran(contestant())
    assert "/nowhere/nvml.so" in memory.told()[1]["driver"]
