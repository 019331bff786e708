"""GPUs, told by a library that stands in for NVIDIA's."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairlap.machine.gpu import Gpus, gpu_facts, gpus, gpus_told_by

_NOT_SUPPORTED = 3
_FAKES = Path(os.environ.get("FAIRLAP_FAKES", Path(__file__).parents[3] / "build/release/cpp/fakes"))


class FakeLibrary:
    """Functions with NVML's signatures that write what a table says. What is not in the table is not exported."""

    def __init__(self, **readings: Any) -> None:
        self.readings = {
            "nvmlInit_v2": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetCount_v2": 1,
            "nvmlDeviceGetHandleByIndex_v2": 7,
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
            for place, pid in enumerate(value):
                arguments[2][place].pid = pid
        elif value is not None:
            pointers = [argument._obj for argument in arguments if hasattr(argument, "_obj")]
            pointers[0].value = value
        return 0


def test_a_device_tells_what_figures_depend_on() -> None:
    facts = gpu_facts(gpus_told_by(FakeLibrary(nvmlDeviceGetComputeRunningProcesses_v3=[41, 42])))
    assert {name: value for name, value in facts.items() if value} == {
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


def test_those_who_compute_on_a_device_are_listed() -> None:
    told = gpus_told_by(FakeLibrary(nvmlDeviceGetComputeRunningProcesses_v3=[41, 42]))
    assert told.devices[0].processes == (41, 42)


def test_what_a_device_does_not_support_is_absent_and_the_rest_stands() -> None:
    library = FakeLibrary()
    library.fails = {"nvmlDeviceGetEccMode": _NOT_SUPPORTED, "nvmlDeviceGetPersistenceMode": _NOT_SUPPORTED}
    gpu = gpus_told_by(library).devices[0]
    assert (gpu.ecc, gpu.persistence, gpu.mig) == (None, None, False)


def test_a_device_that_is_lost_is_not_listed() -> None:
    library = FakeLibrary()
    library.fails = {"nvmlDeviceGetHandleByIndex_v2": 15}
    assert gpus_told_by(library).absent == "the driver is there and sees no device"


@pytest.mark.parametrize(("code", "told"), [(9, "the driver is not loaded"), (18, "restart the machine"), (77, "77")])
def test_a_library_that_does_not_start_says_why(code: int, told: str) -> None:
    library = FakeLibrary()
    library.fails = {"nvmlInit_v2": code}
    assert told in gpus_told_by(library).absent
    assert "nvmlShutdown" not in library.calls


def test_what_was_started_is_ended() -> None:
    library = FakeLibrary()
    gpus_told_by(library)
    assert library.calls.count("nvmlInit_v2") == library.calls.count("nvmlShutdown") == 1


def test_a_library_that_is_not_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBNVML", "/nowhere/libnvidia-ml.so.1")
    assert gpus() == Gpus(absent="/nowhere/libnvidia-ml.so.1 cannot be opened: there is no NVIDIA driver here")


def test_a_library_that_is_another_one_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_LIBNVML", "libc.so.6")
    assert gpus().absent.endswith("would not start: lacks nvmlInit_v2")


@pytest.mark.sanitized
def test_a_real_library_is_called_through_its_own_binary_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in in C lacks what says how a device is set, as old drivers do."""
    library = _FAKES / "libfairlap_fake_nvml.so"
    assert library.exists(), f"no fakes in {_FAKES}; `make test` builds them"
    monkeypatch.setenv("FAIRLAP_LIBNVML", str(library))
    control = ctypes.CDLL(str(library))
    control.fake_nvml_reset()
    control.fake_nvml_set_driver_version(b"575.1", 12090)
    told = gpus()
    assert (told.driver, told.cuda, told.absent) == ("575.1", "12.9", "")
    (gpu,) = told.devices
    assert (gpu.memory_bytes, gpu.most_sm_mhz, gpu.power_limit_mw) == (16 * 1024**3, 1980, 700_000)
    assert gpu.persistence is None
    control.fake_nvml_outstanding_inits.restype = ctypes.c_int64
    assert control.fake_nvml_outstanding_inits() == 0
