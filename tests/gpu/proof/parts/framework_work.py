"""One large matrix product in each framework, in a separate process, on the stream that it exposes or that is found.

``python -m tests.gpu.proof.parts.framework_work NAME`` reports what every method reads, and on which
streams it ran.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..json_lines import report, run_program
from ..record import NotHere

SIZE = 8192  # milliseconds on any device, of which dispatch is a small share
SAMPLES = 40
HIDDEN = "hidden"
SEARCH = "the stream, as its adapter finds it"


@dataclass(frozen=True)
class Work:
    call: Callable[[], Any]
    done: Callable[[Any], Any]
    stream: object  # HIDDEN where the framework exposes none
    find: Callable[[Callable[[], Any]], object] | None = None  # as its adapter finds the stream that is not exposed


def torch_imported() -> Any:
    torch = _imported("torch")
    if not torch.cuda.is_available():
        raise NotHere("this PyTorch has no CUDA", "torch")
    return torch


def torch_work() -> Work:
    torch = torch_imported()
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    a = torch.randn(SIZE, SIZE, device="cuda")
    out = torch.empty_like(a)
    return Work(lambda: torch.mm(a, a, out=out), lambda _: torch.cuda.synchronize(), stream)


def cupy_work() -> Work:
    cupy = _imported("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.use()
    a = cupy.random.standard_normal((SIZE, SIZE), dtype=cupy.float32)
    out = cupy.empty_like(a)
    return Work(lambda: cupy.matmul(a, a, out=out), lambda _: stream.synchronize(), stream)


def jax_work() -> Work:
    jax = _imported("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        raise NotHere("this JAX has no CUDA", "jax")
    a = jax.random.normal(jax.random.key(1), (SIZE, SIZE))
    multiply = jax.jit(partial(jax.numpy.matmul, precision="highest"))  # in IEEE float32, as the others do
    jax.block_until_ready(multiply(a, a))
    from fairlap.frameworks.adapter_parts.devices.jax_on_device import stream_of_xla

    return Work(lambda: multiply(a, a), jax.block_until_ready, HIDDEN, partial(stream_of_xla, jax.devices()[0]))


def tensorflow_work() -> Work:
    tensorflow = _imported("tensorflow")
    found = tensorflow.config.list_physical_devices("GPU")
    if not found:
        raise NotHere("this TensorFlow has no CUDA", "tensorflow")
    tensorflow.config.experimental.set_memory_growth(found[0], True)
    a = tensorflow.random.normal((SIZE, SIZE))
    multiply = tensorflow.function(lambda x: tensorflow.linalg.matmul(x, x))
    multiply(a).numpy()
    from fairlap.engine.cuda.device_completion import stream_used_by

    sync = tensorflow.test.experimental.sync_devices
    return Work(lambda: multiply(a), lambda _: sync(), HIDDEN, lambda call: stream_used_by(call, 0))


def onnxruntime_work(*before: str) -> Work:
    """``before`` are providers that are asked before CUDA's."""
    onnxruntime, torch = _imported("onnxruntime"), _imported("torch")
    onnxruntime.preload_dlls()
    for provider in (*before, "CUDAExecutionProvider"):
        if provider not in onnxruntime.get_available_providers():
            raise NotHere(f"this ONNX Runtime has no {provider}", "tensorrt" if provider in before else "onnxruntime")
    helper, proto = _imported("onnx.helper"), _imported("onnx").TensorProto
    shape = [SIZE, SIZE]
    x, y = (helper.make_tensor_value_info(name, proto.FLOAT, shape) for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    stream = torch.cuda.Stream()
    options = {"user_compute_stream": str(stream.cuda_stream), "device_id": "0"}
    providers = [*((name, options) for name in before), ("CUDAExecutionProvider", {**options, "use_tf32": "0"})]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=providers)
    first = (*before, "CUDAExecutionProvider")[0]
    if session.get_providers()[0] != first:
        raise NotHere(f"{first} could not be loaded", "tensorrt" if before else "onnxruntime")
    a, out = torch.randn(SIZE, SIZE, device="cuda"), torch.empty(SIZE, SIZE, device="cuda")
    torch.cuda.synchronize()
    binding = session.io_binding()
    for bind, name, tensor in ((binding.bind_input, "x", a), (binding.bind_output, "y", out)):
        bind(name, "cuda", 0, "float32", shape, tensor.data_ptr())
    run = onnxruntime.RunOptions()
    run.add_run_config_entry("disable_synchronize_execution_providers", "1")
    return Work(lambda: session.run_with_iobinding(binding, run), lambda _: stream.synchronize(), stream)


def paddle_work() -> Work:
    paddle = _imported("paddle")
    if not paddle.is_compiled_with_cuda():
        raise NotHere("this Paddle has no CUDA", "paddle")
    paddle.set_device("gpu:0")
    paddle.base.core.set_cublas_switch(False)  # TF32, which is on by default
    a = paddle.randn([SIZE, SIZE])
    return Work(lambda: paddle.matmul(a, a), lambda _: paddle.device.synchronize(), paddle.device.current_stream())


FRAMEWORKS: dict[str, Callable[[], Work]] = {
    "torch": torch_work,
    "cupy": cupy_work,
    "jax": jax_work,
    "tensorflow": tensorflow_work,
    "onnxruntime": onnxruntime_work,
    "onnxruntime-tensorrt": partial(onnxruntime_work, "TensorrtExecutionProvider"),
    "paddle": paddle_work,
}


def _imported(name: str) -> Any:
    from importlib import import_module

    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ImportError:
        raise NotHere(f"{package} is not installed", package) from None


def report_all(work: Work) -> None:
    """CUPTI comes last, because it stays active in the process and would affect the other figures."""
    spans = [(f"device_span, gate {gate}", {"method": "device_span", "gate": gate}) for gate in ("auto", "none")]
    by_context: list[tuple[str, dict[str, Any]]] = [
        ("context_span, waited for", {"method": "context_span", "stream": HIDDEN, "done": work.done}),
        ("context_span, not waited for", {"method": "context_span", "stream": HIDDEN}),
        ("host_issue", {"method": "host_issue"}),
    ]
    for name, options in (*(spans if work.find is None else ()), *by_context):
        _report(name, work, options)
    if work.find is not None:
        work = _with_stream(work, work.find)
        for name, options in spans if work.stream != HIDDEN else ():
            _report(name, work, options)
    _report("kernel_sum", work, {"method": "kernel_sum", "done": work.done})


def _with_stream(work: Work, find: Callable[[Callable[[], Any]], object]) -> Work:
    from fairlap.errors import FairlapError

    try:
        return replace(work, stream=find(work.call))
    except FairlapError as error:
        report(method=SEARCH, ns=None, note=str(error))
        return work


def _report(name: str, work: Work, options: dict[str, Any]) -> None:
    from fairlap.engine.cuda.stream_calls import time_on_stream
    from fairlap.errors import FairlapError

    try:
        result = time_on_stream(
            work.call, **{"stream": work.stream, "samples": SAMPLES, "warmup": 5, "calls_per_sample": 1, **options}
        )
    except FairlapError as refused:
        report(method=name, ns=None, note=str(refused))
        return
    busy = result.quantities.get("busy_ns")
    report(
        method=name,
        ns=result.median_ns,
        busy_ns=busy.median_ns if busy is not None else None,
        host_ns_per_sample=result.elapsed_s * 1e9 / max(1, result.samples),
        invalid=sum(result.invalid.values()),
        gate=result.settings.get("gate", ""),
        streams=sorted(result.streams),
        handed_over=result.stream_handed_over,
        note="; ".join(notice.code for notice in result.warnings),
    )


if __name__ == "__main__":
    run_program(lambda: report_all(FRAMEWORKS[sys.argv[1]]()))
