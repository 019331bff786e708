"""GPUs as NVML reports them, through libraries that stand in for NVIDIA's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairlap.machine.hardware.cuda_devices import total_bytes, used_bytes
from fairlap.machine.hardware.gpu import gpu_facts, gpus
from watched_machine import fake_nvml_path, fresh_fake_nvml

from .machines import built

_NOT_SUPPORTED, _NOT_FOUND, _INSUFFICIENT_SIZE = 3, 6, 7
_GIB = 1024**3


class FakeLibrary:
    """Functions with NVML's signatures that write what a table holds. What is not in the table is not exported."""

    def __init__(self, **readings: Any) -> None:
        self.readings = {
            "nvmlInitWithFlags": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetCount_v2": 1,
            "nvmlDeviceGetHandleByIndex_v2": None,
            "nvmlDeviceGetName": b"A100-SXM4-80GB",
            "nvmlSystemGetDriverVersion": b"580.65.06",
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlDeviceGetClockInfo": {1: 210, 2: 1593},
            "nvmlDeviceGetMaxClockInfo": {1: 1410, 2: 1593},
            "nvmlDeviceGetEnforcedPowerLimit": 300_000,
            "nvmlDeviceGetPowerManagementDefaultLimit": 400_000,
            "nvmlDeviceGetPersistenceMode": 0,
            "nvmlDeviceGetEccMode": 1,
            "nvmlDeviceGetMigMode": 0,
            "nvmlDeviceGetCurrPcieLinkGeneration": 1,
            "nvmlDeviceGetMaxPcieLinkGeneration": 4,
            "nvmlDeviceGetCurrPcieLinkWidth": 16,
            "nvmlDeviceGetMaxPcieLinkWidth": 16,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 1,
        } | readings
        self.fails: dict[str, int] = {}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_") or name not in self.__dict__["readings"]:
            raise AttributeError(name)
        return lambda *arguments: self._answer(name, arguments)

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> int:
        self.calls.append(name)
        if name in self.fails:
            return self.fails[name]
        value = self.readings[name]
        if isinstance(value, dict):
            value = value[arguments[1].value]
        if isinstance(value, bytes):
            arguments[-2].value = value
        elif isinstance(value, list):
            arguments[1]._obj.value = len(value)
            if arguments[2] is None:  # asked for their number
                return _INSUFFICIENT_SIZE
            for place, pid in enumerate(value):
                arguments[2][place].pid = pid
        elif value is not None:
            pointers = [argument._obj for argument in arguments if hasattr(argument, "_obj")]
            pointers[0].value = value
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    made = FakeLibrary(nvmlDeviceGetComputeRunningProcesses_v3=[41, 42])
    monkeypatch.setattr("ctypes.CDLL", lambda name: made)
    return made


@pytest.mark.usefixtures("library")
def test_a_device_reports_what_measurements_depend_on() -> None:
    found = gpus()
    assert {name: value for name, value in gpu_facts(found).items() if value} == {
        "driver": "580.65.06",
        "cuda": "13.0",
        "gpu 0": "A100-SXM4-80GB",
        "gpu 0 clock": "210 of 1410 MHz",
        "gpu 0 memory clock": "1593 MHz",
        "gpu 0 power limit": "300 of 400 W",
        "gpu 0 persistence": "off",
        "gpu 0 ecc": "on",
        "gpu 0 mig": "off",
        "gpu 0 pcie generation": "1 of 4",
        "gpu 0 pcie width": "16",
    }
    assert (found.devices[0].processes, found.devices[0].clock_reasons) == ((41, 42), 1)


def test_what_a_device_does_not_support_is_absent_and_the_rest_remains(library: FakeLibrary) -> None:
    library.fails = {"nvmlDeviceGetEccMode": _NOT_SUPPORTED, "nvmlDeviceGetPersistenceMode": _NOT_SUPPORTED}
    [gpu] = gpus().devices
    assert (gpu.ecc, gpu.persistence, gpu.mig) == (None, None, False)


def test_the_instances_of_a_divided_device_are_named(library: FakeLibrary) -> None:
    """Those that exist come before those that do not, for which NVML has no handle (nvml.h, nvmlDeviceGetMig...)."""
    answered = library._answer

    def of_two_instances(name: str, arguments: tuple[Any, ...]) -> int:
        if name == "nvmlDeviceGetMigDeviceHandleByIndex":
            return 0 if arguments[1].value < 2 else _NOT_FOUND
        return answered(name, arguments)

    library.readings |= {"nvmlDeviceGetMigMode": 1, "nvmlDeviceGetMaxMigDeviceCount": 7}
    library.readings |= {"nvmlDeviceGetMigDeviceHandleByIndex": None, "nvmlDeviceGetName": b"NVIDIA A100 MIG 1g.10gb"}
    library._answer = of_two_instances  # type: ignore[method-assign]
    assert gpu_facts(gpus())["gpu 0 mig"] == "on: 1g.10gb, 1g.10gb"


_NVLINK_4_0 = 6  # NVML_NVLINK_VERSION_4_0
_INVALID_ARGUMENT = 2


@pytest.mark.parametrize(
    ("states", "fact"),
    [
        (dict.fromkeys(range(18), 1), "18 links of version 4.0"),
        ({link: int(link != 3) for link in range(18)}, "17 of 18 links of version 4.0"),
        ({0: 0, 1: 0}, "0 of 2 links of version 4.0"),
        ({1: 1}, "1 link of version 4.0"),
        ({}, None),
    ],
)
def test_nvlinks_are_counted_with_those_that_are_down(
    library: FakeLibrary, states: dict[int, int], fact: str | None
) -> None:
    """A number that is no link gives NVML_ERROR_INVALID_ARGUMENT, and versions are numbers (nvml.h)."""
    answered = library._answer

    def of_links(name: str, arguments: tuple[Any, ...]) -> int:
        if name not in ("nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion"):
            return answered(name, arguments)
        if arguments[1] not in states:
            return _INVALID_ARGUMENT
        arguments[2]._obj.value = states[arguments[1]] if name.endswith("State") else _NVLINK_4_0
        return 0

    library.readings |= {"nvmlDeviceGetNvLinkState": None, "nvmlDeviceGetNvLinkVersion": None}
    library._answer = of_links  # type: ignore[method-assign]
    assert gpu_facts(gpus())["gpu 0 nvlink"] == (fact or "")


@pytest.mark.parametrize(
    ("address", "folder", "node", "fact"),
    [
        (b"00000000:C1:00.0", "0000:c1:00.0", "1", "1"),
        (b"00010000:01:00.0", "10000:01:00.0", "0", "0"),
        (b"00000000:C1:00.0", "0000:c1:00.0", "-1", ""),
        (b"00000000:C1:00.0", "0000:c2:00.0", "1", ""),
        (b"", "0000:c1:00.0", "1", ""),
    ],
)
def test_the_memory_node_of_a_device_is_a_fact(
    library: FakeLibrary, tmp_path: Path, address: bytes, folder: str, node: str, fact: str
) -> None:
    """The kernel writes it into numa_node of the device's folder, -1 for none (its ABI document sysfs-bus-pci)."""
    answered = library._answer

    def at(name: str, arguments: tuple[Any, ...]) -> int:
        if name != "nvmlDeviceGetPciInfo_v3":
            return answered(name, arguments)
        arguments[1]._obj.busId = address
        return 0

    library.readings |= {"nvmlDeviceGetPciInfo_v3": None}
    library._answer = at  # type: ignore[method-assign]
    root = built(tmp_path, {f"sys/bus/pci/devices/{folder}/numa_node": f"{node}\n"})
    assert gpu_facts(gpus(), root)["gpu 0 numa node"] == fact


def test_a_lost_device_is_not_listed(library: FakeLibrary) -> None:
    library.fails = {"nvmlDeviceGetHandleByIndex_v2": 15}
    assert (gpus().devices, bool(gpus().absent)) == ((), True)


@pytest.mark.parametrize(("code", "word"), [(9, "Driver Not Loaded"), (18, "restart the machine"), (77, "77")])
def test_a_library_that_does_not_start_gives_the_reason(library: FakeLibrary, code: int, word: str) -> None:
    library.fails = {"nvmlInitWithFlags": code}
    assert word in gpus().absent
    assert "nvmlShutdown" not in library.calls


def test_what_was_initialised_is_shut_down(library: FakeLibrary) -> None:
    gpus()
    assert library.calls.count("nvmlInitWithFlags") == library.calls.count("nvmlShutdown") == 1


@pytest.mark.parametrize("name", ["/nowhere/libnvidia-ml.so.1", "libc.so.6"])
def test_a_missing_or_wrong_library_is_a_reason(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("FAIRLAP_LIBNVML", name)
    assert gpus().devices == ()
    assert gpus().absent == used_bytes("cuda:0") != ""


@pytest.mark.sanitized
def test_a_real_library_is_called_through_its_own_binary_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in in C lacks the functions that report how a device is set, as old drivers do."""
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    control = fresh_fake_nvml()
    control.fake_nvml_set_driver_version(b"575.1", 12090)
    control.fake_nvml_set_reading(0, b"memory_used", 5 * _GIB)
    found = gpus()
    assert (found.driver, found.cuda, found.absent) == ("575.1", "12.9", "")
    [gpu] = found.devices
    assert (gpu.memory_bytes, gpu.most_sm_mhz, gpu.power_limit_mw) == (16 * _GIB, 1980, 700_000)
    assert gpu.persistence is None
    assert (total_bytes("cuda:0"), used_bytes("cuda:0")) == (16 * _GIB, 5 * _GIB)
    control.fake_nvml_outstanding_inits.restype = ctypes.c_int64
    assert control.fake_nvml_outstanding_inits() == 0
