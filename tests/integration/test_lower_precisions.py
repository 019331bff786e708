"""The real frameworks in lower precisions: right within their tolerances, read back, and refused with a reason."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import here as run
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.request.names import contestant_named
from fairlap.request.work import Mode, Precision, Work
from fairlap.scenarios.process_result import ProcessResult
from keras_files import lookup
from one_block import processes_of_one_block
from onnx_files import masked_lookup
from thorough import thorough_where

pytestmark = [pytest.mark.sanitized, pytest.mark.timeout(600)]

# A framework's own mixed precision, or its kernels, decide what is rounded; all of it rounds more than float32 does.
RACED: tuple[tuple[str, Precision], ...] = (
    *(("torch", precision) for precision in ("fp16", "bf16", "autocast")),
    ("torch:compile", "bf16"),
    *(("jax", precision) for precision in ("fp16", "bf16")),
    *(("tensorflow:xla", precision) for precision in ("fp16", "bf16")),
    *(("tensorflow:graph", precision) for precision in ("bf16", "autocast")),
    ("onnxruntime", "int8"),
    ("litert", "int8"),
)
QUICK = (("torch", "autocast"), ("onnxruntime", "int8"))
LEAST_ERROR = {"fp16": 1e-5, "bf16": 1e-4, "autocast": 1e-4, "int8": 1e-3}


def raced(name: str, precision: Precision, mode: Mode = "infer") -> ProcessResult:
    framework = framework_named(contestant_named(name).framework)
    if not is_importable(framework):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    return processes_of_one_block(name, Work("mlp", 2, mode, precision))[name]


def row_of_one(framework: str, precision: str, model: Path, *options: object) -> dict[str, Any]:
    """Of one contestant that raced in the precision to the end; the last option is the file it is written to."""
    done = run(
        *("compare", model, "--no-store", "--quiet", "--blocks", "1", "--seconds", "100ms"),
        *("--on", framework, "--precision", precision, *options),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (row,) = json.loads(Path(str(options[-1])).read_text())["rows"]
    assert (row["outcome"], row["settings"]["precision"]) == ("finished", precision)
    found: dict[str, Any] = row
    return found


@pytest.mark.slow_but("onnxruntime")
@pytest.mark.parametrize(("name", "precision"), thorough_where(lambda each: each not in QUICK, RACED))
def test_a_framework_computes_in_the_precision_that_was_asked_for(name: str, precision: Precision) -> None:
    process = raced(name, precision)
    assert process.outcome == "finished", process.message + process.details
    assert process.in_force["precision"] == precision
    assert process.errors
    assert all(error.right for error in process.errors)
    assert max(error.distance for error in process.errors) > LEAST_ERROR[precision]
    assert process.zero_weights is not None


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "precision"), [("torch", "autocast"), ("jax", "fp16"), ("tensorflow:graph", "autocast")]
)
def test_gradients_in_a_lower_precision_have_the_slopes_of_the_reference(name: str, precision: Precision) -> None:
    process = raced(name, precision, "grad")
    assert process.outcome == "finished", process.message + process.details
    assert process.in_force["precision"] == precision


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tool"), [("openvino", "nncf"), ("torch:compile", "torchao")])
def test_openvino_and_pytorch_are_quantized_with_the_extra_and_name_it_without(name: str, tool: str) -> None:
    process = raced(name, "int8")
    if find_spec(tool) is None:
        assert (process.outcome, process.code) == ("unsupported", "E_UNSUPPORTED")
        assert tool in process.message
        return
    assert process.outcome == "finished", process.message + process.details
    assert process.in_force["precision"] == "int8"
    assert max(error.distance for error in process.errors) > LEAST_ERROR["int8"]
    assert "32 calibration sets" in process.route


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["onnxruntime", "litert"])
def test_quantizing_is_a_conversion_that_is_done_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    first, second = raced(name, "int8"), raced(name, "int8")
    assert first.outcome == second.outcome == "finished", first.message
    assert "32 calibration sets" in first.route
    assert first.conversion_s is not None
    assert (second.route, second.conversion_s) == (first.route, first.conversion_s)
    assert second.phases_s["convert"] < first.phases_s["convert"]
    assert "products in integers" in first.in_force.get("quantized", "products in integers")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "precision"),
    [("jax", "int8"), ("jax", "autocast"), ("onnxruntime", "bf16"), ("torch", "int8"), ("tensorflow", "autocast")],
)
def test_a_precision_that_a_framework_lacks_is_refused(name: str, precision: Precision) -> None:
    process = raced(name, precision)
    assert (process.outcome, process.code) == ("unsupported", "E_UNSUPPORTED")


@pytest.mark.slow
def test_precisions_of_a_user_s_model_are_ranked_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "race.json"
    done = run(
        *("compare", masked_lookup(tmp_path / "m.onnx"), "--dims", "batch=4,sequence=32", "--no-store", "--quiet"),
        *("--on", "onnxruntime,torch", "--precision", "fp32,bf16,int8", "--across-precisions", "--max-drop", "0.1%"),
        *("--blocks", "2", "--seconds", "100ms", "-o", file),
    )
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in json.loads(file.read_text())["rows"]}
    assert set(rows) == {f"{name} ({kind})" for name in ("onnxruntime", "torch") for kind in ("fp32", "bf16", "int8")}
    outcomes = {name: (row["outcome"], row["code"]) for name, row in rows.items()}
    assert outcomes["onnxruntime (fp32)"] == outcomes["torch (fp32)"] == ("finished", "")
    assert outcomes["torch (bf16)"] == outcomes["onnxruntime (int8)"] == ("unqualified", "E_MAX_DROP")
    assert outcomes["onnxruntime (bf16)"] == outcomes["torch (int8)"] == ("unsupported", "E_UNSUPPORTED")
    assert rows["onnxruntime (int8)"]["error_drop"] > 1e-3
    assert rows["onnxruntime (int8)"]["latency_p50_ns"]["value"] > 0
    assert rows["torch (fp32)"]["error_drop"] < 1e-6
    assert "calibration sets" in rows["onnxruntime (int8)"]["route"]


@pytest.mark.thorough
@pytest.mark.parametrize("framework", ["jax", "tensorflow:xla"])
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_an_imported_graph_is_held_in_the_precision(
    framework: str, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(framework.partition(":")[0], reason="`make test` installs it and runs this")
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    model = masked_lookup(tmp_path / "m.onnx")
    row_of_one(framework, precision, model, "--dims", "batch=4,sequence=32", "-o", tmp_path / "race.json")


@pytest.mark.thorough
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_keras_file_is_loaded_in_the_precision(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("keras", reason="tensorflow brings it")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    model = lookup(tmp_path / "k.keras")
    row = row_of_one("tensorflow:graph", precision, model, "--batch", "4", "-o", tmp_path / "race.json")
    assert row["error_relative"] > LEAST_ERROR[precision]


@pytest.mark.slow
def test_a_file_in_fp8_races_as_it_is_and_the_row_says_that_products_are_in_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    row = row_of_one("onnxruntime", "fp32", file_in_fp8(tmp_path / "m.onnx"), "-o", tmp_path / "race.json")
    assert "float32" in row["settings"]["fp8"]
    assert row["error_relative"] < 1e-2


@pytest.mark.slow
def test_frameworks_that_hold_the_weights_of_a_file_in_fp8_are_ranked_and_name_the_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("torch", "jax", "tensorflow:graph")
    if not all(is_importable(framework_named(contestant_named(name).framework)) for name in names):
        pytest.skip("not all of the frameworks are installed here; `make test` installs them and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    done = run(
        *("compare", file_in_fp8(tmp_path / "m.onnx"), "--on", ",".join(names), "--no-store", "--quiet"),
        *("--blocks", "1", "--seconds", "100ms", "-o", tmp_path / "race.json"),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    rows = {row["contestant"]: row for row in json.loads((tmp_path / "race.json").read_text())["rows"]}
    assert {name: rows[name]["outcome"] for name in names} == dict.fromkeys(names, "finished")
    assert [rows[name]["settings"]["precision"] for name in names[1:]] == ["fp32 and fp8"] * 2
    assert all(rows[name]["error_relative"] < 1e-2 for name in names)


def file_in_fp8(path: Path) -> Path:
    onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    from fairlap.models.fp8_graphs.quantized_graph import in_fp8

    rng = np.random.default_rng(0)
    weights = onnx.numpy_helper.from_array(rng.standard_normal((16, 4)).astype(np.float32), "w")
    ends = [onnx.helper.make_tensor_value_info(name, 1, [8, size]) for name, size in (("x", 16), ("y", 4))]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "net", ends[:1], ends[1:], [weights]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(in_fp8(model, [{"x": rng.standard_normal((8, 16)).astype(np.float32)}]).model, path)
    return path
