"""TensorFlow's adapter on a GPU, as far as a machine without one can show it.

The real TensorFlow computes on the CPU, one of its operations launches kernels on the fake device, and the fake CUPTI
calls back for them.

That TensorFlow sees GPUs, and what it does to them, is made up here by replacing the functions that it is asked by.
What remains unproven is in docs/how-to/race-on-a-gpu.md.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import device_framework
import msgspec
import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.frameworks.contract import Unsupported
from fairlap.scenarios.asking import Prepared
from fairlap.scenarios.calls import latency
from fairlap.scenarios.calls.latency_messages import Measure, Measured
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Answer
from fairlap.worker.service import Service
from machine_marks import needs_package
from workers_of_fake import PLUGGED, Files

pytestmark = [pytest.mark.slow, pytest.mark.sanitized, needs_package("tensorflow")]
sys.path.append(str(PLUGGED))

SEEN = 2
MIB = 2**20


class PretendedGpus:
    """What TensorFlow was asked to do with its GPUs."""

    def __init__(self) -> None:
        self.visible: list[Any] = []
        self.limits_mib: list[int] = []
        self.peaks_forgotten = 0

    @contextmanager
    def in_place(self) -> Iterator[PretendedGpus]:
        import tensorflow as tf

        gpus = [tf.config.PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(SEEN)]
        memory = tf.config.experimental
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tf.config, "list_physical_devices", lambda kind: {"GPU": gpus}[kind])
            patch.setattr(tf.config, "set_visible_devices", self._show)
            patch.setattr(tf.config, "get_visible_devices", lambda kind: {"GPU": self.visible}[kind])
            patch.setattr(tf.config, "set_logical_device_configuration", self._limit)
            patch.setattr(memory, "get_memory_info", lambda device: {"GPU:0": {"current": 5, "peak": 9}}[device])
            patch.setattr(memory, "reset_memory_stats", self._forget)
            yield self

    def _show(self, devices: list[Any], kind: str) -> None:
        assert kind == "GPU"
        self.visible = devices

    def _limit(self, device: Any, configurations: list[Any]) -> None:
        assert [device] == self.visible
        self.limits_mib += [each.memory_limit for each in configurations]

    def _forget(self, device: str) -> None:
        assert device == "GPU:0"
        self.peaks_forgotten += 1


class OnSecondGpu:
    """A worker's service in this process, with TensorFlow prepared on cuda:1 of two devices."""

    def __init__(self, variant: str = "", *, device: str = "cuda:1", streams: int = 1) -> None:
        self.machine = device_framework.machine = Machine()
        self.machine.cuda.fake_cuda_set_device_count(SEEN)
        context = device_framework.context = int(self.machine.cuda.fake_cuda_activate_primary_context(1))
        self.streams = tuple(int(self.machine.cuda.fake_cuda_create_stream(context, 1)) for _ in range(streams))
        device_framework.streams = self.streams
        self.folder = Path(tempfile.mkdtemp())
        self.service = Service(Phases(lambda _message: None))
        self.request = msgspec.structs.replace(
            Files(self.folder).write().request(variant, "tensorflow"),
            device=device,
            device_memory_limit_bytes=64 * MIB,
        )

    def prepare(self) -> Prepared:
        return self.service.prepare(self.request)

    def measure(self) -> Measured:
        self.prepare()
        self.service.answer(Answer("inputs", str(self.folder / "answer.safetensors")))
        assert self.machine.cuda.fake_cuda_pending_work(0) == 0
        self.measured, raw = latency.serve(self.service.held, Measure(samples=20, warmup=2, calls_per_sample=1))
        self.samples = {
            quantity.name: np.frombuffer(values, "<f8")
            for quantity, values in zip(self.measured.quantities, raw, strict=True)
        }
        return self.measured

    @property
    def methods(self) -> dict[str, str]:
        return {quantity.name: quantity.method for quantity in self.measured.quantities}


@on_fakes
def test_tensorflow_uses_the_device_of_that_number_only_and_in_float32() -> None:
    with PretendedGpus().in_place() as gpus:
        in_force = OnSecondGpu().prepare().in_force
    assert [device.name for device in gpus.visible] == ["/physical_device:GPU:1"]
    assert gpus.limits_mib == [64]
    assert in_force["device"] == "/physical_device:GPU:1"
    assert in_force["tf32"] == "off"


@on_fakes
def test_a_device_that_tensorflow_does_not_see_is_refused() -> None:
    with PretendedGpus().in_place() as gpus, pytest.raises(Unsupported) as refused:
        OnSecondGpu(device=f"cuda:{SEEN}").prepare()
    assert f"sees {SEEN} CUDA devices" in str(refused.value)
    assert gpus.visible == []


@on_fakes
def test_its_stream_is_the_one_on_which_its_operations_launch_and_the_row_names_how_it_was_found() -> None:
    for variant in ("", "graph"):
        with PretendedGpus().in_place():
            contestant = OnSecondGpu(variant)
            measured = contestant.measure()
        assert measured.quantities[0].name == "wall_ns"
        assert measured.absent == {}
        assert "its stream by CUPTI's callbacks during one call" in contestant.methods["device_span_ns"]
        assert np.allclose(contestant.samples["device_span_ns"], device_framework.KERNEL_NS, atol=0.01)
        assert np.allclose(contestant.samples["kernel_sum_ns"], device_framework.KERNEL_NS, atol=0.01)
        assert contestant.machine.cupti.fake_cupti_outstanding(b"subscribers") == 0


@on_fakes
def test_operations_on_two_streams_have_no_stream_to_time_and_the_rest_is_measured() -> None:
    with PretendedGpus().in_place():
        contestant = OnSecondGpu("graph", streams=2)
        measured = contestant.measure()
    assert set(measured.absent) == {"device_span_ns"}
    assert all(f"{stream:#x}" in measured.absent["device_span_ns"] for stream in contestant.streams)
    assert {"wall_ns", "context_span_ns", "kernel_sum_ns"} <= set(contestant.methods)
    assert np.allclose(contestant.samples["kernel_sum_ns"], 2 * device_framework.KERNEL_NS, atol=0.01)


@on_fakes
def test_operations_that_launch_nothing_have_no_stream_and_the_reason_is_kept() -> None:
    """As a model would that TensorFlow placed on the CPU."""
    with PretendedGpus().in_place():
        contestant = OnSecondGpu("graph", streams=0)
        measured = contestant.measure()
    assert "launched no kernel on CUDA device 1" in measured.absent["device_span_ns"]
    assert "kernel_sum_ns" in measured.absent
    assert measured.quantities[0].name == "wall_ns"


@on_fakes
def test_the_statistics_of_its_allocator_are_the_devices() -> None:
    with PretendedGpus().in_place() as gpus:
        contestant = OnSecondGpu()
        contestant.measure()
        memory = contestant.service.quit().memory
    assert (memory.bytes["allocator_live"], memory.bytes["allocator_live_peak"]) == (5, 9)
    assert gpus.peaks_forgotten == 1  # until it is ready and while it runs are two phases
