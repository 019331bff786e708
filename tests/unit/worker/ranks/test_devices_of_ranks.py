"""Which GPU each rank gets, how it is hidden from the others, and what the driver must then show.

That CUDA_VISIBLE_DEVICES takes UUIDs, "GPU-..." and "MIG-...", and hides what it does not list is said in NVIDIA's CUDA
C++ Programming Guide, "CUDA Environment Variables".
"""

from __future__ import annotations

import ctypes
import os

import pytest
from fairlap.engine import _native
from fairlap.frameworks.contract import Unsupported
from fairlap.machine.hardware import cuda_devices
from fairlap.machine.hardware.cuda_devices import Board, board_of, visible_devices
from fairlap.worker.ranks.devices import DEVICES, VISIBLE, RankDevices, device_in_force, devices_for, see_own_device
from fairlap.worker.ranks.placement import Place
from visible_gpus import uuid_of
from watched_machine import fake_nvml_path, fresh_fake_nvml

HERE = (Place("", 0, 4),)
ALL = ("cuda:0", "cuda:1", "cuda:2", "cuda:3")


@pytest.fixture(autouse=True)
def nvml(monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.delenv(VISIBLE, raising=False)
    fake = fresh_fake_nvml()
    fake.fake_nvml_set_device_count(4)
    return fake


def cuda_sees(monkeypatch: pytest.MonkeyPatch, *slots: int, uuids: tuple[str, ...] = ()) -> None:
    own = uuids or tuple(map(uuid_of, slots))
    seen = [(f"0000:{slot + 1:02X}:00.0", uuid) for slot, uuid in zip(slots, own, strict=True)]
    monkeypatch.setattr(cuda_devices, "_seen_by_cuda", lambda visible, order: seen)


def test_ranks_get_the_devices_in_cudas_order_by_their_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_sees(monkeypatch, 2, 0, 1, 3)
    found = devices_for(ALL, HERE)
    assert found.by_rank == tuple(f"GPU-{uuid_of(slot)}" for slot in (2, 0, 1, 3))
    assert found.environment == {DEVICES: "/".join(found.by_rank)}
    assert found.whole_gpus == ",".join(found.by_rank)
    assert [board_of(each) for each in found.by_rank] == [Board(2), Board(0), Board(1), Board(3)]


def test_ranks_on_processors_have_none() -> None:
    found = devices_for((), HERE)
    assert (found, found.environment, found.whole_gpus) == (RankDevices(), {}, "")


def test_a_device_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_sees(monkeypatch, 0, 1)
    with pytest.raises(Unsupported, match=r"2 devices.*cuda:2, cuda:3"):
        devices_for(ALL, HERE)


def test_two_instances_of_one_gpu_are_not_for_two_ranks(nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL calls ranks on one GPU duplicates (ncclInvalidUsage, "Duplicate GPU detected")."""
    instances = ("11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-666666666666")
    for each in instances:
        nvml.fake_nvml_add_mig_instance(1, f"MIG-{each}".encode())
    cuda_sees(monkeypatch, 1, 1, uuids=instances)
    seen = visible_devices()
    assert not isinstance(seen, str)
    assert [each.name for each in seen] == [f"MIG-{each}" for each in instances]
    with pytest.raises(Unsupported, match="fewer GPUs"):
        devices_for(ALL[:2], (Place("", 0, 2),))
    assert devices_for(ALL[:1], (Place("", 0, 1),)).whole_gpus == ""


def test_without_an_answer_of_the_driver_numbers_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_devices, "_seen_by_cuda", lambda visible, order: "it does not answer")
    found = devices_for(ALL, HERE)
    assert (found.by_rank, found.whole_gpus) == (ALL, "")


def test_ranks_of_each_host_begin_with_its_first_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_sees(monkeypatch, 0, 1)
    found = devices_for(ALL[:2], (Place("", 0, 2), Place("b", 2, 2), Place("c", 4, 1)))
    assert found.by_rank == (f"GPU-{uuid_of(0)}", f"GPU-{uuid_of(1)}", "cuda:0", "cuda:1", "cuda:0")


@pytest.mark.parametrize(
    ("own", "before", "after"),
    [
        ("GPU-aa/GPU-bb", None, "GPU-bb"),
        ("GPU-aa/GPU-bb", "GPU-aa,GPU-bb", "GPU-bb"),
        ("cuda:0/cuda:1", None, "1"),
        ("cuda:0/cuda:1", "5,GPU-cc", "GPU-cc"),
        ("cuda:0/cuda:1", "5", ""),  # which shows none, and not that of another rank
        ("", None, None),
        ("", "5", "5"),
    ],
)
def test_a_rank_hides_all_others_from_itself(
    own: str, before: str | None, after: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICES, own)
    if before is not None:
        monkeypatch.setenv(VISIBLE, before)
    see_own_device(1)
    assert os.environ.get(VISIBLE) == after


@pytest.mark.parametrize(
    ("own", "seen", "found"),
    [
        ("GPU-aa/GPU-bb", ["bb"], {"gpu": "bb"}),
        ("cuda:0/cuda:1", ["bb"], {"gpu": "bb"}),
        ("GPU-aa/GPU-bb", ["aa"], None),
        ("GPU-aa/GPU-bb", ["aa", "bb"], None),
        ("cuda:0/cuda:1", ["aa", "bb"], None),
        ("cuda:0/cuda:1", [], None),
        ("", ["aa", "bb"], {}),
    ],
)
def test_the_driver_must_show_a_rank_its_own_gpu_alone(
    own: str, seen: list[str], found: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICES, own)
    monkeypatch.setattr(_native, "cuda_device_identities", lambda: [("0000:01:00.0", uuid) for uuid in seen])
    if found is not None:
        assert device_in_force(1) == found
        return
    with pytest.raises(Unsupported, match="rank 1"):
        device_in_force(1)
