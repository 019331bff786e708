"""A stand-in for the package ``paddle`` built for CUDA, with what its release 3.3 has and no more.

Names and parameters are those of Paddle's own sources: python/paddle/device/__init__.py (``set_device``,
``current_stream``, whose ``__cuda_stream__`` gives version 0 and the raw handle, and ``get_cudnn_version``),
python/paddle/device/cuda/__init__.py (statistics of memory, which take a device's number), and
paddle/fluid/pybind/pybind.cc (``set_cublas_switch`` and the other three, which only a build for CUDA needs; both are on
by default). ``test_paddle_has_these_names`` compares them with an installed Paddle. Results are NumPy's; a kernel of
the fake device stands for the time.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

KERNEL_NS = 20_000
_DEFAULTS = {
    "FLAGS_use_onednn": False,
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_enable_pir_in_executor_trace_run": True,
    "FLAGS_enable_api_kernel_fallback": True,
    "FLAGS_cudnn_deterministic": False,
    "FLAGS_cudnn_exhaustive_search": False,
    "FLAGS_enable_cublas_tensor_op_math": False,
}


class Tensor:
    __slots__ = ("array", "place", "stop_gradient")

    def __init__(self, array: Any, place: str) -> None:
        self.array, self.place, self.stop_gradient = np.asarray(array), place, True

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def numpy(self) -> Any:
        return self.array


class Stream:
    __slots__ = ("_handle",)

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class Machine:
    """What a test decides, and what was asked for. ``launch`` takes a stream and puts a kernel on it."""

    def __init__(self, launch: Callable[[int], object], stream: int, devices: int) -> None:
        self.launch, self.stream, self.devices = launch, stream, devices
        self.place = "cpu"
        self.made_on = ""  # if set, in place of the device that was set
        self.switches = {"cublas": True, "cudnn": True}
        self.statistics = {"Allocated": (5, 9), "Reserved": (16, 32)}  # now, and at the peak
        self.forgotten: list[str] = []
        self.asked: set[int] = set()  # devices of which statistics were asked for

    def module(self) -> Any:
        """Make the package."""
        core = SimpleNamespace(set_num_threads=lambda _count: None)
        for name in self.switches:
            setattr(core, f"set_{name}_switch", lambda on, name=name: self.switches.update({name: bool(on)}))
            setattr(core, f"get_{name}_switch", lambda name=name: self.switches[name])
        cuda = SimpleNamespace(
            device_count=lambda: self.devices,
            get_device_name=lambda device: f"fake GPU {device}",
            memory_allocated=lambda device: self._read(device, "Allocated", 0),
            max_memory_allocated=lambda device: self._read(device, "Allocated", 1),
            memory_reserved=lambda device: self._read(device, "Reserved", 0),
            max_memory_reserved=lambda device: self._read(device, "Reserved", 1),
            reset_max_memory_allocated=lambda device: self.forgotten.append("Allocated"),
            reset_max_memory_reserved=lambda device: self.forgotten.append("Reserved"),
        )
        return SimpleNamespace(
            __version__="3.3.1",
            __file__="/nowhere/paddle/__init__.py",
            float32=np.dtype(np.float32),
            base=SimpleNamespace(core=core),
            device=SimpleNamespace(
                cuda=cuda,
                current_stream=self._current_stream,
                get_device=lambda: self.place,
                get_cudnn_version=lambda: 91000,
            ),
            set_device=lambda name: setattr(self, "place", name),
            is_compiled_with_cuda=lambda: True,
            set_grad_enabled=lambda _on: None,
            is_grad_enabled=lambda: False,
            get_flags=lambda names: {name: _DEFAULTS[name] for name in names},
            to_tensor=lambda array: Tensor(array, f"Place({self.made_on or self.place})"),
            matmul=self._matmul,
        )

    def _current_stream(self, device: str) -> Stream:
        assert device == self.place
        return Stream(self.stream)

    def _matmul(self, x: Tensor, y: Tensor) -> Tensor:
        self.launch(self.stream)
        return Tensor(x.array @ y.array, x.place)

    def _read(self, device: int, kind: str, which: int) -> int:
        self.asked.add(device)
        return self.statistics[kind][which]
