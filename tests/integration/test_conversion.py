"""``fairlap convert`` writes a file with its proof, says where there is none, and keeps nothing that is wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from command_line import error_code
from command_line import here as run
from onnx_files import masked_lookup, one_node
from tflite_files import NORMALISED, dense

BOUND = ("--dims", "batch=2,sequence=6")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return masked_lookup(tmp_path / "m.onnx")


def test_a_file_is_kept_with_its_proof(model: Path) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    import onnx

    done = run("convert", model, "--for", "onnxruntime", *BOUND, "--json", cwd=model.parent)
    assert done.returncode == 0, done.stderr
    folder = model.parent / "m-for-onnxruntime"
    proof = json.loads((folder / "proof.json").read_text())
    assert json.loads(done.stdout) == proof
    assert 0 < proof["error_relative"] < 2e-6
    assert proof["weights_proven"] is True
    ((name, digest),) = proof["files"].items()
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    sizes = onnx.load(folder / name).graph.input[0].type.tensor_type.shape.dim
    assert [size.dim_value for size in sizes] == proof["shapes"]["ids"] == [2, 6]
    again = run("convert", model, "--for", "onnxruntime", *BOUND, cwd=model.parent)
    assert (again.returncode, error_code(again)) == (2, "E_FILE")


@pytest.mark.slow
def test_a_function_is_proven_and_nothing_is_written(model: Path) -> None:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    done = run("convert", model, "--for", "jax", *BOUND, "--json", cwd=model.parent)
    assert done.returncode == 0, done.stderr
    proof = json.loads(done.stdout)
    assert proof["files"] == {}
    assert proof["conversion_s"] > 0
    assert not (model.parent / "m-for-jax").exists()


@pytest.mark.slow
def test_a_framework_without_a_route_is_refused(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="`make test` installs it and runs this")
    done = run(
        "convert", dense(tmp_path / "m.tflite", last=NORMALISED), "--for", "jax", "--batch", "2", cwd=model.parent
    )
    assert (done.returncode, error_code(done)) == (2, "E_UNSUPPORTED")


@pytest.mark.slow
def test_openvino_s_file_comes_with_its_weights_and_the_missing_reference_is_stated(
    model: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ai_edge_litert", reason="`make test` installs it and runs this")
    pytest.importorskip("openvino", reason="`make test` installs it and runs this")
    file = dense(tmp_path / "t.tflite", last=NORMALISED)
    done = run("convert", file, "--for", "openvino", "--batch", "2", "--into", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    proof = json.loads(done.stdout)
    assert set(proof["files"]) == {"model.xml", "model.bin"}
    assert proof["weights_proven"] is False
    assert [notice["code"] for notice in proof["notices"]] == ["W_NO_REFERENCE"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.xml", "model.bin", "proof.json"}


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_converted(model: Path) -> None:
    done = run("convert", model, "--for", "onnxruntime", *BOUND, "--into", "/proc/nope", cwd=model.parent)
    assert (done.returncode, error_code(done)) == (2, "E_FILE")
    assert done.stderr.count("\n") == 1
    assert not (model.parent / "cache").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("names", "kept"), [(("x", "y"), True), (("image:0", "scores/1"), False)])
def test_litert_takes_models_with_any_names_and_keeps_those_that_tensorflow_keeps(
    model: Path, tmp_path: Path, names: tuple[str, str], kept: bool
) -> None:
    interpreters = pytest.importorskip("ai_edge_litert.interpreter", reason="`make test` installs it and runs this")
    pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    import onnx

    node = onnx.helper.make_node("Relu", names[:1], names[1:])
    file = one_node(tmp_path / "relu.onnx", node, {names[0]: (onnx.TensorProto.FLOAT, [2, 3])})
    done = run("convert", file, "--for", "litert", "--into", tmp_path / "out", cwd=model.parent)
    assert done.returncode == 0, done.stderr
    interpreter = interpreters.Interpreter(model_path=str(next((tmp_path / "out").glob("*.tflite"))))
    [signature] = interpreter.get_signature_list().values()
    assert (signature["inputs"] == list(names[:1]), signature["outputs"] == list(names[1:])) == (kept, kept)
