"""A file that OpenVINO itself wrote is bound and raced in OpenVINO, and float16 weights are said."""

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
from fairlap.race.equal_work.answers import answer_error
from machine_marks import needs
from onnx_files import drawn, materials_of, opened, source_of

needs("openvino")

WIDTH, CLASSES = 8, 4
MATRIX = drawn(WIDTH, CLASSES)


def written(path: Path, *, in_float16: bool = False) -> Path:
    """``x`` of an open batch times a matrix, through tanh."""
    import openvino
    from openvino import opset15 as operators

    x = operators.parameter([-1, WIDTH], np.float32, name="x")
    product = operators.matmul(x, operators.constant(MATRIX), False, False)
    answer = operators.tanh(product)
    x.output(0).get_tensor().set_names({"x"})
    answer.output(0).get_tensor().set_names({"y"})
    openvino.save_model(openvino.Model([answer], [x], "dense"), path, compress_to_fp16=in_float16)
    return path


@pytest.mark.parametrize("in_float16", [False, True])
def test_openvino_answers_as_by_hand(tmp_path: Path, *, in_float16: bool) -> None:
    materials = materials_of(source_of(written(tmp_path / "m.xml", in_float16=in_float16), batch=3), tmp_path)
    work = materials.workload("inputs")
    contestant = framework_named("openvino")().prepare(work, Settings(threads=1), lambda _: nullcontext())
    got = contestant.outputs(contestant.bind(work.inputs)())["y"]
    assert answer_error("y", "", got, materials.reference("inputs")["y"], materials.tolerance("y")).right
    held = MATRIX.astype(np.float16) if in_float16 else MATRIX
    expected = np.tanh(work.inputs["x"].astype(np.float64) @ held.astype(np.float64))
    np.testing.assert_allclose(got, expected, atol=1e-6)
    codes = {notice.code for notice in materials.notices}
    assert codes == {"W_NO_REFERENCE", *(["W_FILE_PRECISION"] if in_float16 else [])}
    assert materials.spec.parameters == MATRIX.size


def test_no_other_framework_reads_it(tmp_path: Path) -> None:
    folder, bundle = opened(source_of(written(tmp_path / "m.xml"), batch=2), tmp_path)
    assert route_to(bundle, "openvino", "onnx").is_native
    for framework, implementation in (("onnxruntime", "onnx"), ("torch", ""), ("litert", "tensorflow")):
        assert route_to(bundle, framework, implementation).why_not
    assert safetensors.read(reference_file(folder, "inputs"))["y"].shape == (2, CLASSES)


def test_what_is_none_of_its_files_is_one_line(tmp_path: Path) -> None:
    whole = written(tmp_path / "m.xml").read_text()
    (tmp_path / "m.bin").rename(tmp_path / "kept.bin")
    for name, content in (("empty", ""), ("other", "<svg/>"), ("half", whole[: len(whole) // 2])):
        (tmp_path / f"{name}.xml").write_text(content)
    for name in ("empty", "other", "half", "m", "missing"):
        with pytest.raises(FairlapError) as refused:
            opened(source_of(tmp_path / f"{name}.xml", batch=2), tmp_path)
        assert refused.value.code == "E_SOURCE", name
        assert "\n" not in str(refused.value)


def test_its_open_sizes_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FairlapError) as refused:
        opened(source_of(written(tmp_path / "m.xml")), tmp_path)
    assert refused.value.code == "E_MODEL_DIMENSIONS"
