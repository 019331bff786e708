"""The stream that a framework hands over is the one that its work runs on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fairlap.engine import measure
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.engine.cuda.streams import stream_of
from fairlap.errors import InvalidRequest

SPIN_NS = 200_000


def check_span(result: Any) -> None:
    assert not np.isnan(result.device_span_ns).any(), str(result)
    assert 0.9 * SPIN_NS < result.median_ns < 1.2 * SPIN_NS + 20_000, str(result)


def test_a_side_stream_of_torch(torch: Any, stream: Any, spinner: Any) -> None:
    check_span(measure(lambda: spinner.spin_ns(stream.cuda_stream, SPIN_NS), stream=stream, samples=30, warmup=3))


def test_the_default_stream_of_torch_is_address_zero_and_valid(torch: Any, spinner: Any) -> None:
    default = torch.cuda.default_stream()
    assert stream_of(default).address == 0
    check_span(measure(lambda: spinner.spin_ns(0, SPIN_NS), stream=default, samples=30, warmup=3))


@pytest.mark.parametrize("address", [0, 1, 2])
def test_the_handles_of_the_default_streams(torch: Any, spinner: Any, address: int) -> None:
    check_span(measure(lambda: spinner.spin_ns(address, SPIN_NS), stream=address, samples=20, warmup=3))


def test_a_cuda_tensor_stands_for_the_current_stream(torch: Any, stream: Any) -> None:
    tensor = torch.zeros(1, device="cuda")
    assert stream_of(tensor).address == stream.cuda_stream
    assert stream_of(tensor.device).device == tensor.device.index


def test_a_cpu_tensor_is_refused(torch: Any) -> None:
    with pytest.raises(InvalidRequest, match="stream"):
        stream_of(torch.zeros(1))


def test_a_stream_of_cupy(cupy: Any, spinner: Any) -> None:
    side = cupy.cuda.Stream(non_blocking=True)
    assert stream_of(side).address == side.ptr
    check_span(measure(lambda: spinner.spin_ns(side.ptr, SPIN_NS), stream=side, samples=30, warmup=3))


def test_work_of_cupy_runs_on_the_stream_of_cupy(cupy: Any) -> None:
    side = cupy.cuda.Stream(non_blocking=True)
    with side:
        big = cupy.ones((4096, 4096), dtype=cupy.float32)
        result = measure(lambda: cupy.multiply(big, 2.0, out=big), stream=side, samples=30)
    assert not np.isnan(result.device_span_ns).any(), str(result)
    assert result.median_ns > 10_000  # 128 MiB of traffic


def test_the_stream_protocol_gives_the_same_address(cupy: Any) -> None:
    side = cupy.cuda.Stream()
    if not hasattr(side, "__cuda_stream__"):
        pytest.skip("this CuPy has no __cuda_stream__")

    class Other:
        def __cuda_stream__(self) -> tuple[int, int]:
            version, address = side.__cuda_stream__()
            return int(version), int(address)

    assert stream_of(Other()).address == side.ptr


def test_work_of_torch_on_its_current_stream(torch: Any, stream: Any) -> None:
    a = torch.randn(2048, 2048, device="cuda")
    out = torch.empty_like(a)
    result = measure(lambda: torch.matmul(a, a, out=out), stream=stream, samples=50)
    assert not np.isnan(result.device_span_ns).any(), str(result)
    assert 20_000 < result.median_ns < 5_000_000


def test_a_session_of_onnx_runtime_without_a_stream_of_its_own_is_refused() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx.helper")
    onnx = pytest.importorskip("onnx")
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    out = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(InvalidRequest, match="user_compute_stream"):
        stream_of(session)


def test_onnx_runtime_runs_on_the_stream_it_was_given(torch: Any, stream: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime has no CUDA provider")
    options = {"user_compute_stream": str(stream.cuda_stream), "device_id": "0"}
    assert stream_of(("CUDAExecutionProvider", options)).address == stream.cuda_stream


def test_two_devices_are_timed_each_on_its_own(torch: Any) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs; several devices are proven on the fakes")
    for index in (0, 1):
        with torch.cuda.device(index):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                a = torch.randn(2048, 2048, device=f"cuda:{index}")
                result = time_on_stream(lambda a=a: a @ a, stream=side, device=index, samples=20)
        assert result.device == index
        assert not np.isnan(result.device_span_ns).any(), str(result)
    with pytest.raises(InvalidRequest, match=r"device 1, .*device 0"):
        time_on_stream(lambda: None, stream=torch.cuda.Stream(device=1), device=0)
