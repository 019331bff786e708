"""What adapters do for a GPU, as far as a machine without one can show it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.engine import _native
from fairlap.errors import NotAvailable
from fairlap.frameworks.adapter_parts.devices import onnxruntime_on_device as ort
from fairlap.frameworks.adapter_parts.devices.missing_device import missing_device
from fairlap.frameworks.contract import Settings, Unsupported, device_number
from fairlap.frameworks.onnxruntime import OnnxRuntime

ON_CUDA = Settings(1, device="cuda:1", device_memory_limit_bytes=2**30, cache_folder="/caches")
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
    options = ort.provider_options(ort.CUDA, ON_CUDA, 0xABCD)
    assert options["user_compute_stream"] == str(0xABCD)
    assert (options["device_id"], options["use_tf32"], options["gpu_mem_limit"]) == ("1", "0", str(2**30))
    assert ort.provider_options(ort.CUDA, ON_CUDA, 0xABCD, tf32=True)["use_tf32"] == "1"


def test_tensorrt_keeps_its_engines_where_the_race_keeps_what_was_compiled() -> None:
    options = ort.provider_options(ort.TENSORRT, TENSORRT, 7)
    assert (options["trt_engine_cache_enable"], options["trt_engine_cache_path"]) == ("1", "/caches")
    assert options["user_compute_stream"] == "7"
    assert OnnxRuntime.environment_for(TENSORRT)["NVIDIA_TF32_OVERRIDE"] == "0"
    assert "NVIDIA_TF32_OVERRIDE" not in OnnxRuntime.environment_for(ON_CUDA)


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
