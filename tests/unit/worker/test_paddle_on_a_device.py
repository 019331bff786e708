"""Paddle's adapter on a GPU, as far as a machine without one can show it: with a stand-in for the package.

What that has is named with its sources in paddle_on_cuda.py. Defaults of flags are those of paddle/common/flags.cc of
Paddle: ``enable_api_kernel_fallback`` is true, and then a kernel that the GPU lacks runs on the processor;
``gpu_memory_limit_mb`` is in MB. Paddle's own optimizer warns that TF32 is on by default
(python/paddle/optimizer/lbfgs.py).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.engine import _native
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.libraries.paddle import Paddle
from fairlap.request.work import Precision
from fairlap.scenarios.asking import Prepared
from fairlap.scenarios.calls import latency
from fairlap.scenarios.calls.latency_messages import Measure, Measured
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Answer
from fairlap.worker.service import Service
from frameworks_on_fakes import paddle_on_cuda
from workers_of_fake import PLUGGED, Files

pytestmark = pytest.mark.sanitized
sys.path.append(str(PLUGGED))

SEEN = 2
MIB = 2**20


class OnSecondGpu:
    """A worker's service in this process, with Paddle prepared on cuda:1 of two devices."""

    def __init__(self, *, device: str = "cuda:1", precision: Precision = "fp32") -> None:
        self.gpu = Machine()
        self.gpu.cuda.fake_cuda_set_device_count(SEEN)
        context = int(self.gpu.cuda.fake_cuda_activate_primary_context(1))
        stream = int(self.gpu.cuda.fake_cuda_create_stream(context, 1))
        self.paddle = paddle_on_cuda.Machine(
            lambda on: self.gpu.kernel(paddle_on_cuda.KERNEL_NS, "matmul", on), stream, SEEN
        )
        self.folder = Path(tempfile.mkdtemp())
        self.service = Service(Phases(lambda _message: None))
        request = Files(self.folder).write().request("", "paddle")
        self.request = msgspec.structs.replace(request, device=device, precision=precision)

    def prepare(self, patch: pytest.MonkeyPatch) -> Prepared:
        patch.setitem(sys.modules, "paddle", self.paddle.module())
        patch.delitem(sys.modules, "tiny_model.paddle_model", raising=False)
        return self.service.prepare(self.request)

    def measure(self, patch: pytest.MonkeyPatch) -> Measured:
        self.prepare(patch)
        self.service.answer(Answer("inputs", str(self.folder / "answer.safetensors")))
        assert self.gpu.cuda.fake_cuda_pending_work(0) == 0  # the answer was waited for
        measured, raw = latency.serve(self.service.held, Measure(samples=20, warmup=2, calls_per_sample=1))
        self.samples = {
            quantity.name: np.frombuffer(values, "<f8")
            for quantity, values in zip(measured.quantities, raw, strict=True)
        }
        return measured


@on_fakes
def test_paddle_uses_the_device_of_that_number_in_float32_and_its_settings_are_read_back() -> None:
    with pytest.MonkeyPatch.context() as patch:
        contestant = OnSecondGpu()
        in_force = contestant.prepare(patch).in_force
    assert contestant.paddle.place == "gpu:1"
    assert contestant.paddle.switches == {"cublas": False, "cudnn": False}
    assert (in_force["precision"], in_force["tf32"]) == ("fp32", "off")
    assert in_force["device"] == "gpu:1, fake GPU 1"
    assert (in_force["cudnn"], in_force["cudnn_deterministic"], in_force["cudnn_exhaustive_search"]) == (
        "91000",
        "off",
        "off",
    )


@on_fakes
def test_tf32_is_on_where_it_is_asked_for() -> None:
    with pytest.MonkeyPatch.context() as patch:
        contestant = OnSecondGpu(precision="tf32")
        in_force = contestant.prepare(patch).in_force
    assert contestant.paddle.switches == {"cublas": True, "cudnn": True}
    assert (in_force["precision"], in_force["tf32"]) == ("tf32", "on")


@on_fakes
def test_its_stream_is_paddles_current_one_and_its_kernels_are_timed_there() -> None:
    with pytest.MonkeyPatch.context() as patch:
        contestant = OnSecondGpu()
        measured = contestant.measure(patch)
    assert measured.quantities[0].name == "wall_ns"
    assert measured.absent == {}
    methods = {quantity.name: quantity.method for quantity in measured.quantities}
    assert "paddle.device.current_stream" in methods["device_span_ns"]
    for name in ("device_span_ns", "kernel_sum_ns"):
        assert np.allclose(contestant.samples[name], paddle_on_cuda.KERNEL_NS, atol=0.01)


@on_fakes
def test_the_statistics_of_its_allocator_are_the_devices_and_their_peaks_are_forgotten_once() -> None:
    with pytest.MonkeyPatch.context() as patch:
        contestant = OnSecondGpu()
        contestant.measure(patch)
        memory = contestant.service.quit().memory
    read = [memory.bytes[f"allocator_{name}"] for name in ("live", "live_peak", "reserved", "reserved_peak")]
    assert read == [5, 9, 16, 32]
    assert contestant.paddle.forgotten == ["Allocated", "Reserved"]
    assert contestant.paddle.asked == {1}


@on_fakes
def test_a_model_that_stayed_on_the_processor_is_refused() -> None:
    with pytest.MonkeyPatch.context() as patch:
        contestant = OnSecondGpu()
        contestant.paddle.made_on = "cpu"
        with pytest.raises(Unsupported, match=r"Place\(cpu\)"):
            contestant.prepare(patch)


@on_fakes
def test_a_device_that_paddle_does_not_see_is_refused() -> None:
    with pytest.MonkeyPatch.context() as patch:
        contestant = OnSecondGpu(device=f"cuda:{SEEN}")
        with pytest.raises(Unsupported, match=f"sees {SEEN} CUDA devices"):
            contestant.prepare(patch)
    assert contestant.paddle.place == "cpu"


def test_a_build_without_cuda_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlap.frameworks.adapter_parts.devices import paddle_on_device

    stand_in = paddle_on_cuda.Machine(lambda _stream: None, 0, 0).module()
    stand_in.is_compiled_with_cuda = lambda: False
    monkeypatch.setitem(sys.modules, "paddle", stand_in)
    monkeypatch.setattr(_native, "cuda_absent_because", lambda: "")
    with pytest.raises(Unsupported, match="install paddlepaddle-gpu"):
        paddle_on_device.prepare_device("cuda:0", Paddle.packages_for("cuda:0")[0], tf32=False)


def test_no_kernel_falls_back_to_the_processor_and_memory_is_limited_by_paddle_itself() -> None:
    on_gpu = Paddle.environment_for(Settings(1, device="cuda:1", device_memory_limit_bytes=64 * MIB))
    assert (on_gpu["FLAGS_enable_api_kernel_fallback"], on_gpu["FLAGS_gpu_memory_limit_mb"]) == ("0", "64")
    unlimited = Paddle.environment_for(Settings(1, device="cuda:1"))
    assert "FLAGS_gpu_memory_limit_mb" not in unlimited
    on_cpu = Paddle.environment_for(Settings(1))
    assert not {"FLAGS_enable_api_kernel_fallback", "FLAGS_gpu_memory_limit_mb"} & set(on_cpu)
