"""What adapters do for a GPU, as far as a machine without one can show it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.engine import _native
from fairlap.errors import NotAvailable
from fairlap.frameworks.adapter_parts import jax_settings
from fairlap.frameworks.adapter_parts.devices import onnxruntime_on_device as ort
from fairlap.frameworks.adapter_parts.devices.missing_device import missing_device
from fairlap.frameworks.contract import Settings, Unsupported, device_number
from fairlap.frameworks.runtimes.onnxruntime import OnnxRuntime

ON_CUDA = Settings(1, device="cuda:1", device_memory_limit_bytes=2**30, cache_folder="/caches")
ON_CUDA_WITHOUT_LIMIT = Settings(1, device="cuda:0")
TENSORRT = Settings(1, variant="tensorrt", device="cuda:1", cache_folder="/caches")


def test_a_device_is_counted_from_its_name() -> None:
    assert [device_number(name) for name in ("cuda", "cuda:0", "cuda:7", "cpu")] == [0, 0, 7, 0]


@pytest.mark.parametrize(
    ("driver", "built", "seen", "part"),
    [
        ("libcuda.so.1 was not found", True, 0, "libcuda.so.1 was not found"),
        ("", False, 0, "install jax[cuda13]"),
        ("", True, 0, "install jax[cuda13]"),  # the libraries come in packages of their own
        ("", True, 1, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_what_is_missing_for_a_gpu_is_one_line(
    driver: str, built: bool, seen: int, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "cuda_absent_because", lambda: driver)
    why = str(missing_device("jax", "cuda:1", seen, built_with_cuda=built, install="jax[cuda13]"))
    assert part in why
    assert why.startswith(f"jax sees {seen} CUDA devices here; requested was cuda:1: ")
    assert len(why.splitlines()) == 1


def test_onnx_runtime_works_on_the_stream_that_it_is_given() -> None:
    [(provider, options)] = ort.providers_for(ON_CUDA, 0xABCD)
    assert provider == ort.CUDA
    assert options["user_compute_stream"] == str(0xABCD)
    assert (options["device_id"], options["use_tf32"], options["gpu_mem_limit"]) == ("1", "0", str(2**30))
    assert ort.providers_for(ON_CUDA, 0xABCD, "tf32")[0][1]["use_tf32"] == "1"


def test_tensorrt_keeps_its_engines_where_the_race_keeps_what_was_compiled() -> None:
    (_, options), (second, of_second) = ort.providers_for(TENSORRT, 7)
    assert (second, of_second["user_compute_stream"], of_second["use_tf32"]) == (ort.CUDA, "7", "0")
    assert not any(option.endswith(("fp16_enable", "bf16_enable", "int8_enable")) for option in options)
    assert (options["trt_engine_cache_enable"], options["trt_engine_cache_path"]) == ("1", "/caches")
    assert options["user_compute_stream"] == "7"
    assert OnnxRuntime.environment_for(TENSORRT)["NVIDIA_TF32_OVERRIDE"] == "0"
    assert "NVIDIA_TF32_OVERRIDE" not in OnnxRuntime.environment_for(ON_CUDA)


def test_what_tensorrt_rejects_goes_to_cuda_on_the_same_stream() -> None:
    """By ONNX Runtime's documentation of TensorRT's provider, which names CUDA's after it; the rest goes to the CPU."""
    (first, of_first), (second, of_second) = ort.providers_for(TENSORRT, 7)
    assert (first, second) == (ort.TENSORRT, ort.CUDA)
    assert of_first["user_compute_stream"] == of_second["user_compute_stream"] == "7"
    assert of_second["use_tf32"] == "0"
    assert [name for name, _ in ort.providers_for(ON_CUDA, 7)] == [ort.CUDA]


def test_a_real_session_reports_where_its_nodes_run() -> None:
    """The names are those that onnxruntime 1.32 itself gives, on the CPU."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    helper = pytest.importorskip("onnx", reason="`make test` installs it and runs this").helper
    x, y = (helper.make_tensor_value_info(name, 1, ["n", "n"]) for name in "xy")
    nodes = [helper.make_node(*each) for each in (("Shape", ["x"], ["s"]), ("MatMul", ["x", "x"], ["m"]))]
    graph = helper.make_graph([*nodes, helper.make_node("Reshape", ["m", "s"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(ort.RECORD_PLACES, "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = ort.nodes_by_provider(session, "onnxruntime-gpu")
    assert found == {"CPUExecutionProvider": {"Shape": 1, "MatMul": 1, "Reshape": 1}}
    with pytest.raises(Unsupported, match="1 of 3 nodes on the CPU instead of cuda:1: 1 MatMul"):
        ort.refuse_work_on_cpu(found, "cuda:1")


def session_with(**types_by_provider: list[str]) -> Any:
    parts = [
        SimpleNamespace(
            ep_name=f"{provider}ExecutionProvider",
            get_nodes=lambda types=types: [SimpleNamespace(op_type=each) for each in types],
        )
        for provider, types in types_by_provider.items()
    ]
    return SimpleNamespace(get_provider_graph_assignment_info=lambda: parts)


def test_shapes_may_be_computed_on_the_cpu_and_are_shown() -> None:
    nodes = ort.nodes_by_provider(session_with(Tensorrt=["Conv"] * 5, CUDA=["NonZero"], CPU=["Shape", "Gather"]), "")
    ort.refuse_work_on_cpu(nodes, "cuda:0")
    assert ort.described_nodes(nodes) == "Tensorrt 5, CUDA 1, CPU 2 (Gather, Shape)"


def test_a_session_that_does_not_report_its_nodes_is_refused() -> None:
    with pytest.raises(Unsupported, match="install onnxruntime-gpu"):
        ort.nodes_by_provider(object(), "onnxruntime-gpu")


def test_jax_enqueues_within_the_call() -> None:
    """With 1 a thread for each device launches; the name is the one that jaxlib 0.10 reads (xla_client.py)."""
    name = "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT"
    assert jax_settings.environment_for(ON_CUDA_WITHOUT_LIMIT)[name] == "0"
    found = importlib.util.find_spec("jaxlib")
    if found is not None and found.origin is not None:
        assert name in (Path(found.origin).parent / "xla_client.py").read_text()


def test_a_run_of_onnx_runtime_returns_when_its_work_is_enqueued() -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    options = ort.run_options(onnxruntime)
    assert options.get_run_config_entry("disable_synchronize_execution_providers") == "1"


def onnxruntime_with(*providers: str) -> Any:
    preloaded: list[bool] = []
    return SimpleNamespace(
        get_available_providers=lambda: list(providers),
        preload_dlls=lambda: preloaded.append(True),
        preloaded=preloaded,
        __file__="/nowhere/__init__.py",
    )


def test_onnx_runtime_loads_the_libraries_of_packages_before_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "cuda_absent_because", lambda: "")
    fake = onnxruntime_with(ort.TENSORRT, ort.CUDA)
    assert ort.provider_of(fake, ON_CUDA, "onnxruntime-gpu") == ort.CUDA
    assert ort.provider_of(fake, TENSORRT, "onnxruntime-gpu") == ort.TENSORRT
    assert fake.preloaded == [True, True]


def test_a_build_without_the_provider_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "cuda_absent_because", lambda: "")
    with pytest.raises(Unsupported) as refused:
        ort.provider_of(onnxruntime_with("CPUExecutionProvider"), TENSORRT, "onnxruntime-gpu[cuda,cudnn]")
    assert "install onnxruntime-gpu[cuda,cudnn]" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_provider_that_cannot_be_loaded_is_explained_by_what_the_linker_misses() -> None:
    why = ort.why_not_loaded(onnxruntime_with(), ort.CUDA)
    assert "libonnxruntime_providers_shared.so" in why


def test_tensorrt_is_for_a_gpu_and_refused_before_anything_is_imported() -> None:
    from contextlib import nullcontext

    from fairlap.models.registry import find
    from fairlap.models.workload import Workload

    found = find("mlp")
    work = Workload(found.spec, found.package, 1, "infer", "fp32", weights={}, inputs={})
    with pytest.raises(Unsupported, match="runs on cuda"):
        OnnxRuntime().prepare(work, Settings(1, variant="tensorrt"), lambda _: nullcontext())


@pytest.mark.sanitized
@pytest.mark.skipif(sys.platform != "linux", reason="workers run on Linux")
def test_the_callback_that_names_xlas_stream_runs_and_says_when_there_is_none() -> None:
    jax = pytest.importorskip("jax", reason="`make test` installs it and runs this")
    from fairlap.frameworks.adapter_parts.devices.jax_on_device import stream_of_xla

    with pytest.raises(NotAvailable, match="GPU context is not available"):
        stream_of_xla(jax.devices("cpu")[0], lambda: None)


def test_the_examples_for_a_gpu_compile() -> None:
    folder = Path(__file__).parents[3] / "docs/examples/gpu"
    programs = list(folder.glob("*.py"))
    assert len(programs) >= 4
    for program in programs:
        compile(program.read_text(), str(program), "exec")
