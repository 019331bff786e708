"""A user's own model is raced from the command line and from Python: rows, routes, refusals and wrong conversions."""

from __future__ import annotations

import json
from pathlib import Path

import fairlap
import numpy as np
import pytest
from command_line import fairlap as run
from fairlap.errors import FairlapError
from keras_files import lookup
from onnx_files import ROWS, masked_lookup
from tflite_files import dense

pytest.importorskip("onnx", reason="`make test` installs it and runs this")
pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return masked_lookup(tmp_path / "m.onnx")


def test_routes_are_listed_with_the_reasons_of_those_that_are_missing(model: Path) -> None:
    done = run("list", "routes", model, "--dims", "batch=2,sequence=6", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    routes = {each["framework"]: each for each in found["routes"]}
    assert routes["onnxruntime"]["route"] == routes["openvino"]["route"] == "native"
    assert "importer" in routes["jax"]["route"]
    assert routes["mxnet"]["why_not"]
    assert [tensor["shape"] for tensor in found["inputs"]] == [[2, 6], [2, 6]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "E_MODEL_DIMENSIONS"),
        (("--dims", "batch=2"), "E_MODEL_DIMENSIONS"),
        (("--shapes", "ids"), "E_SHAPES"),
        (("--dims", "batch=2,sequence=6", "--inputs", "none.npz"), "E_SOURCE_INPUTS"),
        (("--dims", "batch=2,sequence=6", "--data", "synthetic"), "E_DATA"),
        (("--dims", "batch=2,sequence=6", "--mode", "grad"), "E_REQUEST"),
    ],
)
def test_a_request_that_cannot_be_raced_is_one_line_with_a_code(
    model: Path, arguments: tuple[str, ...], code: str
) -> None:
    done = run("compare", model, "--on", "onnxruntime", "--no-store", "--quiet", *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"[{code}]" in done.stderr


def test_bindings_are_for_models_of_one_s_own() -> None:
    done = run("compare", "mlp", "--on", "onnxruntime", "--dims", "batch=2", "--no-store")
    assert (done.returncode, "[E_SHAPES]" in done.stderr) == (2, True)


def test_a_race_from_python_has_rows_with_routes_and_errors(model: Path) -> None:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    results = fairlap.compare(
        str(model), on=["onnxruntime", "jax", "python"], shapes={"ids": (2, 6)}, blocks=1, seconds=0.05, threads=1
    )
    rows = {row.contestant: row for row in results.rows}
    assert rows["onnxruntime"].route == "native"
    assert rows["onnxruntime"].conversion_s is None
    assert rows["jax"].outcome == rows["onnxruntime"].outcome == "finished"
    assert rows["jax"].conversion_s is not None
    for row in (rows["jax"], rows["onnxruntime"]):
        assert row.error_relative is not None
        assert 0 < row.error_relative < 2e-6
    assert (rows["python"].outcome, rows["python"].code) == ("unsupported", "E_UNSUPPORTED")


def test_inputs_of_python_are_checked_against_the_model(model: Path) -> None:
    ids = np.full((2, 6), ROWS)
    with pytest.raises(FairlapError) as refused:
        fairlap.compare(str(model), on="onnxruntime", inputs={"ids": ids, "mask": np.ones((2, 6), int)}, blocks=1)
    assert refused.value.code == "E_SOURCE_INPUTS"


def test_a_keras_file_is_raced_on_each_of_its_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("keras", "tensorflow", "jax", "torch"):
        pytest.importorskip(module)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    file = lookup(tmp_path / "m.keras")
    on = ["tensorflow:graph", "jax", "torch", "onnxruntime"]
    results = fairlap.compare(str(file), on=on, shapes={"ids": (2, 5), "x": (2, 8)}, blocks=1, seconds=0.05, threads=1)
    rows = {row.contestant: row for row in results.rows}
    for name in on[:3]:
        assert rows[name].outcome == "finished", rows[name]
        error = rows[name].error_relative
        assert error is not None
        assert 0 < error < 1e-6
    assert len({rows[name].route for name in on[:3]}) == 3
    assert rows["onnxruntime"].outcome == "unsupported"


def test_rows_without_a_float64_reference_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ai_edge_litert", "openvino"):
        pytest.importorskip(module)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    file = dense(tmp_path / "m.tflite")
    options = ("--on", "litert,openvino,jax", "--batch", "2", "--blocks", "1", "--seconds", "0.05", "--threads", "1")
    done = run("compare", file, *options, "--no-store", "--quiet", "-o", tmp_path / "rows.jsonl")
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())}
    for name in ("litert", "openvino"):
        assert rows[name]["outcome"] == "finished"
        assert "W_NO_REFERENCE" in [warning["code"] for warning in rows[name]["warnings"]]
    assert rows["jax"]["outcome"] == "unsupported"
    assert done.stdout.count("no float64 reference") == 2
