"""A quantized LiteRT file is opened with a reference in its own steps, and a recurrent one answers each call alike."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import bundle_in, reference_file, weights_file
from fairlap.models.sources.litert_files.onnx_graph import OnnxGraph
from fairlap.models.spec import Integers
from fairlap.race.equal_work.answers import OtherWork, answer_error, require_settings
from fairlap.race.equal_work.materials import Materials
from machine_marks import needs
from onnx_files import code_of, materials_of, source_of
from quantized_tflite_files import InSteps, one_operator_in_steps
from recurrent_tflite_files import lstm

needs("ai_edge_litert", "onnx")

RANDOM = np.random.default_rng(0)
HELD = RANDOM.integers(-127, 128, (30, 16)).astype(np.int8)
BIAS = RANDOM.integers(-3000, 3000, 30).astype(np.int32)
SCALE, ZERO, BY_CHANNEL, OUT, OUT_ZERO = 0.04, 7, np.linspace(0.002, 0.008, 30).astype(np.float32), 0.06, -9
GIVEN = [InSteps((6, 16), SCALE, ZERO), InSteps(HELD, BY_CHANNEL.tolist()), InSteps(BIAS, 1e-4, 0, "int32")]


def by_hand(x: np.ndarray, *, zero: int = ZERO, scales: np.ndarray = BY_CHANNEL) -> np.ndarray:
    total = (x.astype(np.int64) - zero) @ HELD.astype(np.int64).T + BIAS
    real = total * (np.float32(SCALE) * scales).astype(np.float64)
    return np.clip(np.round(real / np.float32(OUT)) + OUT_ZERO, -128, 127)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> Materials:
    folder = tmp_path_factory.mktemp("quantized")
    file = one_operator_in_steps(folder / "m.tflite", "FULLY_CONNECTED", GIVEN, InSteps((6, 30), OUT, OUT_ZERO))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        return materials_of(source_of(file), folder)


def test_the_reference_takes_the_same_steps_as_integers_do(quantized: Materials) -> None:
    for which in ("inputs", "changed"):
        x = quantized.workload(which).inputs["x0"]
        assert x.dtype == np.int8
        np.testing.assert_array_equal(safetensors.read(reference_file(quantized.folder, which))["y0"], by_hand(x))


def test_it_is_of_the_class_that_quantized_onnx_files_are_of(quantized: Materials) -> None:
    bundle = bundle_in(quantized.folder)
    assert [notice.code for notice in bundle.notices] == ["W_FILE_PRECISION"]
    assert bundle.own_types == ("int8",)
    assert bundle.spec.precisions == ("fp32",)
    assert all(route.precisions == ("fp32",) for route in bundle.routes.values() if route.name)
    assert bundle.spec.inputs[0].fill == Integers(-128, 128, required=False)
    np.testing.assert_array_equal(safetensors.read(weights_file(quantized.folder))["held1"], HELD)


@pytest.mark.parametrize("framework", ["litert", "onnxruntime"])
def test_frameworks_answer_within_its_tolerance(quantized: Materials, framework: str) -> None:
    """These weights do not saturate without VNNI."""
    adapter = framework_named(framework)
    pytest.importorskip(adapter.module, reason="`make test` installs it and runs this")
    work = quantized.workload("inputs")
    contestant = adapter().prepare(work, Settings(threads=1), lambda _: nullcontext())
    (got,) = contestant.outputs(contestant.bind(work.inputs)()).values()
    assert answer_error("y0", "", got, quantized.reference("inputs")["y0"], quantized.tolerance("y0")).right
    require_settings(contestant.in_force, 1, "fp32", bundle_in(quantized.folder).own_types)


def test_a_file_in_float32_may_not_be_computed_in_steps() -> None:
    with pytest.raises(OtherWork) as refused:
        require_settings({"precision": "int8"}, 1, "fp32", ("float16",))
    assert refused.value.code == "E_PRECISION"


@pytest.mark.parametrize("wrong", ["zero point", "scales"])
def test_a_small_mistake_is_wrong(quantized: Materials, wrong: str) -> None:
    x = quantized.workload("inputs").inputs["x0"]
    answer = by_hand(x, zero=ZERO + 1) if wrong == "zero point" else by_hand(x, scales=np.float32(1.01) * BY_CHANNEL)
    assert not answer_error("y0", "", answer, by_hand(x), quantized.tolerance("y0")).right


def test_a_translation_that_litert_does_not_agree_with_refuses_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OnnxGraph.rounded
    monkeypatch.setattr(OnnxGraph, "rounded", lambda onnx, value, steps: real(onnx, onnx.node("Neg", [value]), steps))
    file = one_operator_in_steps(tmp_path / "m.tflite", "FULLY_CONNECTED", GIVEN, InSteps((6, 30), OUT, OUT_ZERO))
    assert code_of(source_of(file), tmp_path) == "E_SOURCE"


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_types_that_are_not_raced_are_refused_in_one_line(tmp_path: Path, dtype: str) -> None:
    """Inputs in int16, and steps of an operator that is not translated."""
    kind = "RELU" if dtype == "int16" else "L2_NORMALIZATION"
    given = InSteps((4, 8), 0.01, 0, dtype) if dtype == "int16" else InSteps((4, 8), 0.01, 3, "int8")
    result = given if dtype == "int16" else InSteps((4, 8), 1 / 128, 0, "int8")
    options = {} if dtype == "int16" else {"of": "L2Norm"}
    file = one_operator_in_steps(tmp_path / "m.tflite", kind, [given], result, **options)
    assert code_of(source_of(file), tmp_path) == "E_SOURCE"


def test_states_of_a_recurrence_are_forgotten_in_every_call(tmp_path: Path) -> None:
    materials = materials_of(source_of(lstm(tmp_path / "m.tflite", 6)), tmp_path)
    work = materials.workload("inputs")
    contestant = framework_named("litert")().prepare(work, Settings(threads=1), lambda _: nullcontext())
    call = contestant.bind(work.inputs)
    for _ in range(3):
        (got,) = contestant.outputs(call()).values()
        assert answer_error("y", "", got, materials.reference("inputs")["y"], materials.tolerance("y")).right


def test_a_damaged_scale_is_refused_in_one_line(tmp_path: Path) -> None:
    given = [GIVEN[0], InSteps(HELD, [0.0] * 30), GIVEN[2]]
    file = one_operator_in_steps(tmp_path / "m.tflite", "FULLY_CONNECTED", given, InSteps((6, 30), OUT, OUT_ZERO))
    with pytest.raises(FairlapError) as refused:
        materials_of(source_of(file), tmp_path)
    assert refused.value.code == "E_SOURCE"
