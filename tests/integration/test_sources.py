"""A user's own model is raced from the command line and from Python: rows, routes, refusals and wrong conversions."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from command_line import error_code, here, output, refusal
from command_line import fairlap as run
from fairlap.errors import FairlapError
from keras_files import lookup
from machine_marks import needs
from onnx_files import ROWS, masked_lookup
from tflite_files import NORMALISED, dense
from transformers_folders import SIZES, folder_of

needs("onnx", "onnxruntime")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return masked_lookup(tmp_path / "m.onnx")


@pytest.mark.slow
def test_routes_are_listed_with_the_reasons_of_those_that_are_missing(model: Path) -> None:
    found = json.loads(output("list", "routes", model, "--dims", "batch=2,sequence=6", "--json"))
    routes = {each["framework"]: each for each in found["routes"]}
    assert routes["onnxruntime"]["route"] == routes["openvino"]["route"] == "native"
    assert "importer" in routes["jax"]["route"]
    assert routes["mxnet"]["why_not"]
    assert [tensor["shape"] for tensor in found["inputs"]] == [[2, 6], [2, 6]]


@pytest.mark.slow_but("arguments0", "arguments2", "arguments4", "arguments5")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "E_MODEL_DIMENSIONS"),
        (("--dims", "batch=2"), "E_MODEL_DIMENSIONS"),
        (("--shapes", "ids"), "E_SHAPES"),
        (("--dims", "batch=2,sequence=6", "--inputs", "none.npz"), "E_SOURCE_INPUTS"),
        (("--dims", "batch=2,sequence=6", "--data", "none.npy"), "E_DATA"),
        (("--dims", "batch=2,sequence=6", "--mode", "grad"), "E_LOSS"),
    ],
)
def test_a_request_that_cannot_be_raced_is_one_line_with_a_code(
    model: Path, arguments: tuple[str, ...], code: str
) -> None:
    refused = refusal("compare", model, "--on", "onnxruntime", "--no-store", "--quiet", *arguments)
    assert refused.code == code
    assert "\n" not in str(refused)


@pytest.mark.slow_but("debug1")
@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_bad_file_is_one_line_with_a_code_and_keeps_its_exit_status_with_debug(
    tmp_path: Path, debug: tuple[str, ...]
) -> None:
    with (tmp_path / "sparse.pt2").open("wb") as file:
        os.truncate(file.fileno(), 5 * 10**9)
    done = here(*debug, "compare", tmp_path / "sparse.pt2", "--on", "torch", "--no-store", "--quiet")
    assert done.returncode == 2
    assert ("Traceback" in done.stderr) == bool(debug)
    if not debug:
        assert error_code(done) in ("E_SOURCE", "E_SOURCE_SIZE")


def test_bindings_are_for_models_of_one_s_own() -> None:
    assert refusal("compare", "mlp", "--on", "onnxruntime", "--dims", "batch=2", "--no-store").code == "E_SHAPES"


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


@pytest.mark.slow
def test_inputs_of_python_are_checked_against_the_model(model: Path) -> None:
    ids = np.full((2, 6), ROWS)
    with pytest.raises(FairlapError) as refused:
        fairlap.compare(str(model), on="onnxruntime", inputs={"ids": ids, "mask": np.ones((2, 6), int)}, blocks=1)
    assert refused.value.code == "E_SOURCE_INPUTS"


@pytest.mark.thorough
def test_a_keras_file_is_raced_on_each_of_its_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("keras", "tensorflow", "jax", "torch"):
        pytest.importorskip(module, reason="`make test-thorough` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    file = lookup(tmp_path / "m.keras")
    on = ["tensorflow:graph", "jax", "torch", "mxnet"]
    results = fairlap.compare(str(file), on=on, shapes={"ids": (2, 5), "x": (2, 8)}, blocks=1, seconds=0.05, threads=1)
    rows = {row.contestant: row for row in results.rows}
    for name in on[:3]:
        assert rows[name].outcome == "finished", rows[name]
        error = rows[name].error_relative
        assert error is not None
        assert 0 < error < 1e-6
    assert len({rows[name].route for name in on[:3]}) == 3
    assert rows["mxnet"].outcome == "unsupported"


@pytest.mark.slow
def test_rows_without_a_float64_reference_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ai_edge_litert", "openvino"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    file = dense(tmp_path / "m.tflite", last=NORMALISED)
    options = ("--on", "litert,openvino,jax", "--batch", "2", "--blocks", "1", "--seconds", "0.05", "--threads", "1")
    done = run("compare", file, *options, "--no-store", "--quiet", "-o", tmp_path / "rows.jsonl")
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())}
    for name in ("litert", "openvino"):
        assert rows[name]["outcome"] == "finished"
        assert "W_NO_REFERENCE" in [warning["code"] for warning in rows[name]["warnings"]]
    assert rows["jax"]["outcome"] == "unsupported"
    assert done.stdout.count("no float64 reference") == 1  # once, with both names


OWN = """
import numpy as np

def of_jax():
    import jax

    drawn = np.random.default_rng(0)
    params = {"kernel": drawn.normal(size=(8, 4)).astype(np.float32)}
    return (lambda params, x: jax.nn.gelu(x @ params["kernel"])), params, (drawn.normal(size=(3, 8)),)

def of_keras():
    import keras

    keras.utils.set_random_seed(0)
    image = keras.Input((6, 6, 3), name="image")
    found = keras.layers.BatchNormalization()(keras.layers.Conv2D(4, 3, padding="same")(image))
    return keras.Model(image, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling2D()(found)))
"""


def _raced(text: str, on: list[str], **options: Any) -> dict[str, Any]:
    results = fairlap.compare(text, on=on, blocks=1, seconds=0.05, threads=1, **options)
    rows = {row.contestant: row for row in results.rows}
    for name in on:
        assert rows[name].outcome == "finished", rows[name]
        error = rows[name].error_relative
        assert error is not None
        assert 0 < error < 2e-6
    return rows


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_models.py").write_text(OWN)
    return "own_models"


@pytest.mark.thorough
def test_a_jax_function_is_raced_in_jax_tensorflow_and_litert(own: str) -> None:
    for module in ("jax", "tensorflow", "ai_edge_litert"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    rows = _raced(f"{own}:of_jax", ["jax", "tensorflow:graph", "tensorflow:xla", "litert"])
    assert rows["jax"].route == "native"
    assert len({row.route for row in rows.values()}) == 3
    assert rows["litert"].conversion_s is not None


@pytest.mark.thorough
def test_a_keras_model_of_a_function_is_raced_by_its_exports_too(own: str) -> None:
    for module in ("keras", "tensorflow", "torch", "onnxscript", "openvino"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    rows = _raced(f"{own}:of_keras", ["tensorflow:graph", "onnxruntime", "openvino"], batch=2)
    assert len({row.route for row in rows.values()}) == 3
    for name in ("onnxruntime", "openvino"):
        assert rows[name].conversion_s is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("qwen2", marks=pytest.mark.thorough), "resnet"])
def test_a_folder_of_transformers_is_raced(own: str, tmp_path: Path, name: str) -> None:
    for module in ("torch", "transformers", "onnxscript", "openvino"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    folder = folder_of(tmp_path / "m", name, weights=True)
    rows = _raced(f"hf:{folder}", ["torch", "onnxruntime", "openvino"], dims=SIZES[name])
    assert rows["torch"].route == "native"
    assert "W_WEIGHTS_DRAWN" not in [warning.code for warning in rows["torch"].warnings]


@pytest.mark.slow
def test_no_environment_is_made_for_a_framework_without_a_route(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ai_edge_litert", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_ENVS", str(tmp_path / "envs"))
    file = dense(tmp_path / "m.tflite", last=NORMALISED)
    results = fairlap.compare(str(file), on=["litert", "torch==2.12.0"], batch=2, blocks=1, seconds=0.05, threads=1)
    rows = {row.contestant: row for row in results.rows}
    assert rows["litert"].outcome == "finished"
    assert (rows["torch==2.12.0"].outcome, rows["torch==2.12.0"].code) == ("unsupported", "E_UNSUPPORTED")
    assert not (tmp_path / "envs").exists()


def test_a_name_that_is_almost_a_file_s_is_refused_with_the_endings() -> None:
    refused = refusal("compare", "model.onxx", "--on", "onnxruntime", "--no-store")
    assert refused.code == "E_REQUEST"
    assert {".onnx", ".pt2", ".keras", ".tflite"} <= set(str(refused).replace(",", " ").replace(";", " ").split())


@pytest.mark.slow
@pytest.mark.parametrize("what", ["model", "inputs"])
def test_a_run_is_not_repeated_with_other_files(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    inputs, plan = tmp_path / "x.npz", tmp_path / "plan.json"
    np.savez(inputs, ids=np.arange(12).reshape(2, 6), mask=np.eye(2, 6, dtype=np.int64))
    short = ("--blocks", "1", "--seconds", "0.05", "--threads", "1", "--quiet")
    done = run("compare", model, "--on", "onnxruntime", "--inputs", inputs, *short, "--save-plan", plan)
    assert done.returncode == 0, done.stderr
    assert run("compare", "--plan", plan, "--dry-run").returncode == 0
    if what == "model":
        masked_lookup(model, table=np.ones((ROWS, 32), np.float32))
    else:
        np.savez(inputs, ids=np.arange(12)[::-1].reshape(2, 6), mask=np.eye(2, 6, dtype=np.int64))
    for arguments in (("rerun", "last"), ("compare", "--plan", plan), ("compare", "--resume", "last")):
        again = run(*arguments, "--quiet")
        assert again.returncode == 2
        assert "[E_SOURCE_CHANGED]" in again.stderr


@pytest.mark.slow
def test_a_recipe_has_the_model_and_its_plan_runs_from_there(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    short = ("--blocks", "1", "--seconds", "0.05", "--threads", "1", "--quiet")
    done = run("compare", model, "--on", "onnxruntime", "--dims", "batch=2,sequence=6", *short)
    assert done.returncode == 0, done.stderr
    done = run("recipe", "last", "-o", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    model.unlink()
    again = run("compare", "--plan", tmp_path / "again" / "plan.json", "--trust", "--quiet", "--no-store", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
def test_a_bundle_is_rerun_with_the_model_by_its_hash_from_the_current_folder(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    inputs = tmp_path / "x.npz"
    np.savez(inputs, ids=np.arange(12).reshape(2, 6), mask=np.eye(2, 6, dtype=np.int64))
    short = ("--blocks", "2", "--seconds", "0.05", "--threads", "1", "--quiet")
    done = run("compare", model, "--on", "onnxruntime", "--inputs", inputs, *short)
    assert done.returncode == 0, done.stderr
    assert run("bundle", "last", "-o", tmp_path / "m.fairlap", "--no-page").returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    model.rename(tmp_path / "moved.onnx")
    inputs.rename(elsewhere / "x.npz")
    again = ("rerun", tmp_path / "m.fairlap", "--trust", "--quiet", "-o", "again.json")
    missing = run(*again)
    assert missing.returncode == 2
    assert "[E_MODEL_FILE]" in missing.stderr  # after what the plan reaches
    assert digest in missing.stderr
    masked_lookup(elsewhere / "m.onnx", table=np.ones((ROWS, 32), np.float32))
    assert error_code(run(*again)) == "E_SOURCE_CHANGED"
    (elsewhere / "m.onnx").write_bytes(b"no model at all")
    assert error_code(run(*again)) == "E_SOURCE_CHANGED"
    (tmp_path / "moved.onnx").rename(elsewhere / "m.onnx")
    done = run(*again)
    assert done.returncode == 0, done.stderr
    source = json.loads((elsewhere / "again.json").read_bytes())["plan"]["works"][0]["source"]
    assert dict(source["files"])[str(elsewhere / "m.onnx")] == digest
    assert source["inputs"] == str(elsewhere / "x.npz")
    same = run("diff", tmp_path / "m.fairlap", "again.json", "--json")
    assert json.loads(same.stdout)["differences"], same.stdout
