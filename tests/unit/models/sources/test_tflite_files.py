"""A LiteRT file of a user is bound, compared with its graph in float64, and run by LiteRT and OpenVINO."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import reference_file, route_to
from fairlap.models.sources.litert_files.operation import ONE_VALUE
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph
from fairlap.models.sources.proof import MULTIPLE, ROUNDING
from fairlap.race.equal_work.answers import answer_error, require_settings, require_weights
from fairlap.request.fields.source import Source, dims_in, shapes_in
from machine_marks import needs
from onnx_files import materials_of, opened, source_of
from tflite_files import NORMALISED, Stored, dense, streaming, weights

needs("ai_edge_litert")


def by_hand(x: np.ndarray, stored: Stored = "float32") -> np.ndarray:
    held = {name: array.astype(np.float64) for name, array in weights(stored).items()}
    answers: np.ndarray = np.tanh(x.astype(np.float64) @ held["hidden.weight"].T + held["hidden.bias"])
    return answers


@pytest.mark.parametrize("signature", [True, False])
@pytest.mark.parametrize("framework", ["litert", "openvino"])
def test_both_frameworks_agree_with_the_reference(tmp_path: Path, framework: str, *, signature: bool) -> None:
    adapter = framework_named(framework)
    pytest.importorskip(adapter.module, reason="`make test` installs it and runs this")
    source = source_of(dense(tmp_path / "m.tflite", signature=signature), batch=3)
    materials = materials_of(source, tmp_path)
    work = materials.workload("inputs")
    contestant = adapter().prepare(work, Settings(threads=1), lambda _: nullcontext())
    got = contestant.outputs(contestant.bind(work.inputs)())
    (name,) = got
    assert got[name].shape == (3, 4)
    error = answer_error(name, "", got[name], materials.reference("inputs")[name], materials.tolerance(name))
    assert error.right
    np.testing.assert_allclose(got[name], by_hand(next(iter(work.inputs.values()))), atol=1e-6)
    if framework == "litert":
        from fairlap.models.arrays import hash_of

        assert contestant.in_force["conversion"] == "none"
        require_weights(materials, hash_of(contestant.weights()))


@pytest.mark.parametrize("framework", ["litert", "openvino"])
@pytest.mark.parametrize("stored", ["float16", "sparse float16", "sparse float32"])
def test_weights_in_float16_or_sparse_are_raced_as_the_file_has_them(
    tmp_path: Path, stored: Stored, framework: str
) -> None:
    adapter = framework_named(framework)
    pytest.importorskip(adapter.module, reason="`make test` installs it and runs this")
    file = dense(tmp_path / "m.tflite", stored=stored)
    materials = materials_of(source_of(file, batch=3), tmp_path)
    work = materials.workload("inputs")
    contestant = adapter().prepare(work, Settings(threads=1), lambda _: nullcontext())
    (got,) = contestant.outputs(contestant.bind(work.inputs)()).values()
    x = next(iter(work.inputs.values()))
    np.testing.assert_allclose(got, by_hand(x, stored), atol=1e-6)
    np.testing.assert_allclose(materials.reference("inputs")["y"], by_hand(x, stored), rtol=1e-12)
    assert np.abs(by_hand(x, stored) - by_hand(x)).max() > 1e-5  # with others the answers would be wrong
    require_settings(contestant.in_force, 1, "fp32")
    for name, array in weights(stored).items():
        np.testing.assert_array_equal(work.weights[name], array)


def test_the_row_says_that_weights_in_float16_are_widened(tmp_path: Path) -> None:
    _, found = opened(source_of(dense(tmp_path / "m.tflite", stored="float16"), batch=2), tmp_path)
    assert {notice.code for notice in found.notices} == {"W_FILE_PRECISION"}
    assert found.own_types == ("float16",)
    for framework in ("litert", "openvino"):
        route = route_to(found, framework, framework)
        assert route.is_native
        assert "float16" in route.name


def test_what_computes_in_float16_is_refused(tmp_path: Path) -> None:
    from ai_edge_litert import schema_py_generated as schema

    graph = TfliteGraph(dense(tmp_path / "m.tflite", stored="float16").read_bytes())
    main = graph._model.subgraphs[0]
    main.tensors[main.outputs[0]].type = schema.TensorType.FLOAT16
    (tmp_path / "half.tflite").write_bytes(graph.packed())
    with pytest.raises(FairlapError) as refused:
        opened(source_of(tmp_path / "half.tflite", batch=2), tmp_path)
    assert refused.value.code == "E_SOURCE"


def test_its_graph_in_onnx_is_the_float64_reference_and_races_in_the_other_frameworks(tmp_path: Path) -> None:
    folder, found = opened(source_of(dense(tmp_path / "m.tflite"), batch=2), tmp_path)
    assert found.notices == ()
    assert route_to(found, "litert", "tensorflow").name == "native"
    x = safetensors.read(folder / "inputs.safetensors")["x"]
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))["y"], by_hand(x), rtol=1e-12)
    for framework in ("torch", "jax", "tensorflow", "onnx"):
        assert not found.routes[framework].why_not
        assert not found.routes[framework].is_native


def test_an_operator_without_a_translation_leaves_the_reference_kernels(tmp_path: Path) -> None:
    file = dense(tmp_path / "m.tflite", last=NORMALISED)
    folder, found = opened(source_of(file, batch=2), tmp_path)
    assert [notice.code for notice in found.notices] == ["W_NO_REFERENCE"]
    assert NORMALISED in found.notices[0].text
    assert "no float64 reference" in found.reference
    for framework in ("torch", "jax", "tensorflow", "onnxruntime"):
        implementation = "onnx" if framework == "onnxruntime" else ""
        assert NORMALISED in route_to(found, framework, implementation).why_not
    x = safetensors.read(folder / "inputs.safetensors")["x"]
    hidden = np.arctanh(by_hand(x))
    expected = hidden / np.linalg.norm(hidden, axis=-1, keepdims=True)
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))["y"], expected, atol=1e-6)


def test_a_translation_with_other_answers_than_litert_s_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ONE_VALUE, "TANH", "Softsign")
    _, found = opened(source_of(dense(tmp_path / "m.tflite"), batch=2), tmp_path)
    assert [notice.code for notice in found.notices] == ["W_NO_REFERENCE"]
    assert found.routes["torch"].why_not


def test_the_tolerance_follows_from_the_weights_rounding(tmp_path: Path) -> None:
    """Moved by rounding, the outputs of this model move by less than a millionth, and by more than nothing."""
    _, found = opened(source_of(dense(tmp_path / "m.tflite"), batch=2), tmp_path)
    relative = found.tolerances["fp32"]["y"].relative
    assert MULTIPLE * ROUNDING < relative < MULTIPLE * 1e-6


@pytest.mark.parametrize(
    ("bindings", "code"),
    [
        ({}, "E_MODEL_DIMENSIONS"),
        ({"shapes": shapes_in("x:2x9")}, "E_MODEL_DIMENSIONS"),
        ({"shapes": shapes_in("z:2x8")}, "E_MODEL_DIMENSIONS"),
        ({"batch": 2, "ranges": (("z", 0, 1),)}, "E_SHAPES"),
    ],
)
def test_sizes_that_are_open_or_do_not_fit_are_refused(tmp_path: Path, bindings: dict[str, object], code: str) -> None:
    file = dense(tmp_path / "m.tflite")
    with pytest.raises(FairlapError) as refused:
        opened(Source(file.name, str(file), **bindings), tmp_path)  # type: ignore[arg-type]
    assert refused.value.code == code


def test_dimensions_have_no_names(tmp_path: Path) -> None:
    with pytest.raises(FairlapError) as refused:
        opened(Source("m.tflite", str(dense(tmp_path / "m.tflite")), dims=dims_in("batch=2")), tmp_path)
    assert refused.value.code == "E_MODEL_DIMENSIONS"


def test_a_file_that_keeps_variables_from_call_to_call_is_refused(tmp_path: Path) -> None:
    from ai_edge_litert.interpreter import Interpreter

    file = streaming(tmp_path / "keeps.tflite", keeps=True)
    run = Interpreter(str(file))
    run.allocate_tensors()
    answers = []
    for _ in range(2):
        run.set_tensor(run.get_input_details()[0]["index"], np.ones((1, 8), np.float32))
        run.invoke()
        answers.append(float(run.get_tensor(run.get_output_details()[0]["index"])[0, 0]))
    assert answers == [1, 2]  # of equal inputs
    with pytest.raises(FairlapError, match="ASSIGN_VARIABLE") as refused:
        opened(source_of(file), tmp_path)
    assert refused.value.code == "E_SOURCE"
    _, found = opened(source_of(streaming(tmp_path / "reads.tflite", keeps=False)), tmp_path)
    assert [notice.code for notice in found.notices] == ["W_NO_REFERENCE"]


def test_a_damaged_file_or_an_unknown_operator_is_one_line(tmp_path: Path) -> None:
    whole = dense(tmp_path / "m.tflite").read_bytes()
    for number, content in enumerate((b"", whole[:100], whole[: len(whole) // 2], b"\0" * 400)):
        (tmp_path / f"{number}.tflite").write_bytes(content)
    dense(tmp_path / "custom.tflite", operator="CUSTOM")
    for name in ("0", "1", "2", "3", "custom", "missing"):
        with pytest.raises(FairlapError) as refused:
            opened(source_of(tmp_path / f"{name}.tflite", batch=2), tmp_path)
        assert refused.value.code == "E_SOURCE"
        assert "\n" not in str(refused.value)
