"""What TensorFlow's converter quantizes, and what it makes of Keras' recurrences, races in frameworks that differ."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import converted_tflite_files
import pytest
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.sources import bundle as bundle_of_source
from fairlap.models.sources.bundle import bundle_in
from fairlap.race.equal_work.answers import answer_error, require_settings
from fairlap.request.fields.source import shapes_in
from onnx_files import code_of, materials_of, source_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

OWN_TYPES = {
    "int8": ("int8",),
    "uint8": ("int8", "uint8"),
    "int16": ("int16",),
    "dynamic": ("int8",),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Convert in a process of its own, whose memory is gone afterwards."""
    for module in ("tensorflow", "keras", "onnx", "onnxruntime", "ai_edge_litert"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    folder = tmp_path_factory.mktemp("converted")
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, converted_tflite_files.__file__, str(folder)]
    subprocess.run(command, check=True, capture_output=True, env=quiet)
    return folder


@pytest.mark.parametrize("kind", [*converted_tflite_files.QUANTIZED, *converted_tflite_files.RECURRENT])
def test_it_races_in_litert_and_in_onnx_runtime(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Saturating products, which need VNNI, are wrong: so products of bytes are not for ONNX Runtime here."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bundle_of_source, "_implementations", {})  # kept for one model in a process
    materials = materials_of(source_of(files / f"{kind}.tflite"), tmp_path)
    bundle = bundle_in(materials.folder)
    assert bundle.own_types == OWN_TYPES.get(kind, ())
    assert not [notice.code for notice in bundle.notices if notice.code == "W_NO_REFERENCE"]
    work = materials.workload("inputs")
    for framework in ("litert",) if kind in ("int8", "uint8") else ("litert", "onnxruntime"):
        contestant = framework_named(framework)().prepare(work, Settings(threads=1), lambda _: nullcontext())
        ((name, answer),) = contestant.outputs(contestant.bind(work.inputs)()).items()
        error = answer_error(name, "", answer, materials.reference("inputs")[name], materials.tolerance(name))
        assert error.right, framework
        require_settings(contestant.in_force, 1, "fp32", bundle.own_types)


def test_open_sizes_are_bound_before_the_file_is_tried(files: Path, tmp_path: Path) -> None:
    file = files / f"{converted_tflite_files.OPEN}.tflite"
    for shapes, code in (("", "E_MODEL_DIMENSIONS"), ("sound:1x3x1", "E_SHAPES")):
        assert code_of(source_of(file, shapes=shapes_in(shapes)), tmp_path) == code
    materials = materials_of(source_of(file, shapes=shapes_in("sound:1x20x1")), tmp_path)
    assert [answer.shape for answer in materials.reference("inputs").values()] == [(1, 8, 4)]
