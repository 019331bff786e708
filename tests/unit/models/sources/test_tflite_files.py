"""A LiteRT file of a user is bound, compared with the reference kernels, and run by LiteRT and OpenVINO."""

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
from fairlap.models.sources.proof import MULTIPLE, ROUNDING
from fairlap.race.equal_work.answers import answer_error, require_weights
from fairlap.request.fields.source import Source, dims_in, shapes_in
from onnx_files import materials_of, opened, source_of
from tflite_files import dense, weights

pytest.importorskip("ai_edge_litert", reason="`make test` installs it and runs this")


def by_hand(x: np.ndarray) -> np.ndarray:
    held = {name: array.astype(np.float64) for name, array in weights().items()}
    answers: np.ndarray = np.tanh(x.astype(np.float64) @ held["hidden.weight"].T + held["hidden.bias"])
    return answers


@pytest.mark.parametrize("signature", [True, False])
@pytest.mark.parametrize("framework", ["litert", "openvino"])
def test_both_frameworks_agree_with_the_reference_kernels(tmp_path: Path, framework: str, *, signature: bool) -> None:
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


def test_the_bundle_says_that_nothing_computes_it_in_float64(tmp_path: Path) -> None:
    folder, found = opened(source_of(dense(tmp_path / "m.tflite"), batch=2), tmp_path)
    assert [notice.code for notice in found.notices] == ["W_NO_REFERENCE"]
    assert "no float64 reference" in found.reference
    assert route_to(found, "litert", "tensorflow").name == "native"
    for framework in ("torch", "jax", "tensorflow", "onnxruntime"):
        implementation = "onnx" if framework == "onnxruntime" else ""
        assert route_to(found, framework, implementation).why_not
    x = safetensors.read(folder / "inputs.safetensors")["x"]
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))["y"], by_hand(x), atol=1e-6)


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
