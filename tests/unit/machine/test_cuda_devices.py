"""A framework's ``cuda:N`` among NVML's devices, whatever order CUDA has and however devices are named."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import fairlap
import pytest
from cuda_on_fakes import Machine, fakes, on_fakes
from fairlap.engine import _native
from fairlap.errors import NotAvailable
from fairlap.machine.hardware import cuda_devices
from fairlap.machine.hardware.cuda_devices import Board, board_of, total_bytes, used_bytes
from watched_machine import fake_nvml_path, fresh_fake_nvml

_GIB = 1024**3
_INSTANCE = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    asked = cuda_devices._seen_by_cuda  # a test may put something else in its place
    asked.cache_clear()
    yield fresh_fake_nvml()
    asked.cache_clear()


def cuda_sees(monkeypatch: pytest.MonkeyPatch, *devices: tuple[str, str]) -> None:
    monkeypatch.setattr(cuda_devices, "_seen_by_cuda", lambda visible, order: list(devices))


def at(slot: int) -> tuple[str, str]:
    return f"0000:{slot + 1:02X}:00.0", f"00000000-0000-0000-0000-{slot:012d}"


def test_the_fastest_device_is_found_in_the_slot_that_it_sits_in(
    nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.fake_nvml_set_device_count(4)
    nvml.fake_nvml_set_reading(2, b"memory_used", 7 * _GIB)
    cuda_sees(monkeypatch, at(2), at(0), at(1), at(3))
    assert [board_of(f"cuda:{number}") for number in range(4)] == [Board(2), Board(0), Board(1), Board(3)]
    assert used_bytes("cuda:0") == 7 * _GIB


def test_a_device_listed_by_its_uuid_is_the_one_that_the_driver_says(
    nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.fake_nvml_set_device_count(8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-00000000-0000-0000-0000-000000000005")
    cuda_sees(monkeypatch, at(5))
    assert board_of("cuda:0") == Board(5)
    assert "cuda:1 is not among them" in str(board_of("cuda:1"))


def test_an_instance_of_a_mig_device_has_its_own_memory(nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.fake_nvml_set_device_count(2)
    instance = nvml.fake_nvml_add_mig_instance(1, f"MIG-{_INSTANCE}".encode())
    nvml.fake_nvml_set_reading(instance, b"memory_total", 10 * _GIB)
    nvml.fake_nvml_set_reading(instance, b"memory_used", 3 * _GIB)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"MIG-{_INSTANCE}")
    cuda_sees(monkeypatch, (at(1)[0], _INSTANCE), at(0))
    assert board_of("cuda:0") == Board(1, f"MIG-{_INSTANCE}")
    assert (total_bytes("cuda:0"), used_bytes("cuda:0")) == (10 * _GIB, 3 * _GIB)
    assert (board_of("cuda:1"), used_bytes("cuda:1")) == (Board(0), _GIB)


def test_the_only_device_may_be_divided_too(nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = nvml.fake_nvml_add_mig_instance(0, f"MIG-{_INSTANCE}".encode())
    nvml.fake_nvml_set_reading(instance, b"memory_used", 3 * _GIB)
    cuda_sees(monkeypatch, (at(0)[0], _INSTANCE))
    assert board_of("cuda:0") == Board(0, f"MIG-{_INSTANCE}")
    assert used_bytes("cuda:0") == 3 * _GIB


def test_gpus_are_named_by_the_facts_of_their_machine_each_kind_once() -> None:
    facts = {"gpu 0": "NVIDIA H100", "gpu 1": "NVIDIA A100", "gpu 2": "NVIDIA H100"}
    named = [cuda_devices.named_in(facts, devices) for devices in ("cuda:1", "cuda", "cuda:0,cuda:2", "cuda:0,cuda:1")]
    assert named == ["NVIDIA A100", "NVIDIA H100", "2 x NVIDIA H100", "NVIDIA H100, NVIDIA A100"]
    assert cuda_devices.named_in(facts, "cuda:0,cuda:3") == ""


def test_a_single_device_is_known_without_asking_the_driver(nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_devices, "_seen_by_cuda", lambda visible, order: pytest.fail("the driver was asked"))
    assert board_of("cuda:0") == Board(0)


def test_a_separate_process_asks_the_driver(nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBCUDA", str(fakes() / "libfairlap_fake_cuda.so"))
    nvml.fake_nvml_set_device_count(2)
    assert board_of("cuda:0") == Board(0)
    assert "cuda:1 is not among them" in str(board_of("cuda:1"))


def test_a_driver_that_cannot_be_asked_is_the_reason(nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBCUDA", "/nowhere/libcuda.so.1")
    nvml.fake_nvml_set_device_count(2)
    assert "/nowhere/libcuda.so.1" in str(board_of("cuda:0"))
    assert "/nowhere/libcuda.so.1" in str(used_bytes("cuda:0"))


@on_fakes
def test_the_driver_gives_addresses_and_uuids_in_its_own_order() -> None:
    machine = Machine()
    machine.cuda.fake_cuda_set_device_count(2)
    machine.cuda.fake_cuda_set_device_slot(0, 4)
    machine.cuda.fake_cuda_set_device_uuid(1, _INSTANCE.encode())
    assert _native.cuda_device_identities() == [at(4), ("0000:02:00.0", _INSTANCE)]
    assert machine.outstanding() == 0


def test_without_a_driver_no_race_on_a_gpu_is_started_from_python_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "cuda_absent_because", lambda: "libcuda.so.1 is not there")
    cuda_devices.require_driver("cpu")
    with pytest.raises(NotAvailable, match=r"cuda:0: libcuda\.so\.1 is not there"):
        fairlap.compare("mlp", on="torch", device="cuda:0")
