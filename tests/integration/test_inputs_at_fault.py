"""A race of a user's file on inputs for which every float32 computation is wrong blames them, and says what to give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fairlap as run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS, WIDTH = 4, 16
SHIFT = 1e5
QUICK = ("--on", "onnxruntime,torch", "--blocks", "1", "--seconds", "0.05s", "--threads", "1", "--no-store", "--quiet")


def kernel() -> np.ndarray:
    return (np.random.default_rng(0).standard_normal((WIDTH, WIDTH)) * 0.3).astype(np.float32)


@pytest.fixture
def branching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a product to which a large number is added and subtracted, where the mean of the inputs is above 0."""
    onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    for module in ("onnxruntime", "torch"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [
        make("MatMul", ["x", "kernel"], ["product"]),
        make("ReduceMean", ["x"], ["mean"]),
        make("Greater", ["mean", "zero"], ["above"]),
        make("Where", ["above", "large", "zero"], ["shift"]),
        make("Add", ["product", "shift"], ["shifted"]),
        make("Sub", ["shifted", "shift"], ["out"]),
    ]
    held = {"kernel": kernel(), "zero": np.float32(0), "large": np.float32(SHIFT)}
    arrays = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()]
    ends = [[value(name, onnx.TensorProto.FLOAT, [ROWS, WIDTH])] for name in ("x", "out")]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "branching", *ends, arrays), opset_imports=[onnx.helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save_model(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def by_hand(x: np.ndarray) -> np.ndarray:
    shift = x.dtype.type(SHIFT if x.mean() > 0 else 0)
    answer: np.ndarray = (x @ kernel().astype(x.dtype) + shift) - shift
    return answer


def error_by_hand(mean: float) -> float:
    x = (np.random.default_rng(1).standard_normal((ROWS, WIDTH)) + mean).astype(np.float32)
    exact = by_hand(x.astype(np.float64))
    return float(np.linalg.norm(by_hand(x) - exact) / np.linalg.norm(exact))


def raced(model: Path, *options: object) -> tuple[int, dict[str, Any]]:
    done = run("compare", model, *QUICK, *options, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def test_where_all_contestants_miss_alike_the_inputs_are_at_fault_and_others_pass(
    branching: Path, tmp_path: Path
) -> None:
    """Drawn inputs have a mean of 0 but for chance: below it for those whose rounding is measured, then above it."""
    assert error_by_hand(0.5) > 1e-4 > 1e-6 > error_by_hand(-0.5)
    status, found = raced(branching, "--data-seed", 0)
    assert status != 0
    [work] = found["work_results"]
    assert work["no_verdict_code"] == "E_INPUTS_AT_FAULT"
    assert "--range" in work["why_no_verdict"]
    assert "--inputs" in work["why_no_verdict"]
    assert [(row["outcome"], row["code"]) for row in found["rows"]] == [("disqualified", "E_OUTPUT")] * 2

    np.savez(tmp_path / "below.npz", x=np.random.default_rng(2).uniform(-2, -1, (ROWS, WIDTH)).astype(np.float32))
    for options in (("--range", "x:-2..-1"), ("--inputs", tmp_path / "below.npz")):
        status, found = raced(branching, "--data-seed", 0, *options)
        assert status == 0, options
        assert [row["outcome"] for row in found["rows"]] == ["finished"] * 2
        assert found["work_results"][0]["no_verdict_code"] != "E_INPUTS_AT_FAULT"
