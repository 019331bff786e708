"""ONNX files in sixteen bits and in integers, made by the tools of others, are raced as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fairlap as run
from fairlap.machine.hardware.processor import flags
from fairlap.machine.root import THIS_MACHINE
from onnx_files import drawn

pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.slow]

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT, FLOAT16 = 1, 10
OPTIONS = ("--blocks", "1", "--seconds", "0.02s", "--threads", "1", "--no-store", "--quiet")


def product(path: Path, kind: int, *, cast: bool = False) -> Path:
    """Write a product of x, of that type, with weights of it; or with those that a Cast makes float32."""
    make, helper = onnx.helper.make_node, onnx.helper
    ends = FLOAT if cast else kind
    weights = drawn(64, 16).astype(np.float16 if kind == FLOAT16 else np.float32)
    nodes = [make("Cast", ["w"], ["wide"], to=FLOAT)] if cast else []
    nodes.append(make("MatMul", ["x", "wide" if cast else "w"], ["y"]))
    x, y = (helper.make_tensor_value_info(name, ends, [8, size]) for name, size in (("x", 64), ("y", 16)))
    graph = helper.make_graph(nodes, "product", [x], [y], [onnx.numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def rows_of(file: Path, on: str, *, exit_status: int = 0) -> dict[str, Any]:
    done = run("compare", file, "--on", on, *OPTIONS, "-o", file.with_suffix(".jsonl"))
    assert done.returncode == exit_status, done.stderr
    rows = map(json.loads, file.with_suffix(".jsonl").read_text().splitlines())
    return {row["contestant"]: row for row in rows}


@pytest.mark.parametrize("cast", [False, True])
def test_a_file_in_float16_is_raced_in_its_own_type_or_in_float32(cast: bool, tmp_path: Path) -> None:
    for module in ("torch", "onnxruntime", "jax"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    rows = rows_of(product(tmp_path / "half.onnx", FLOAT16, cast=cast), "onnxruntime,torch,jax")
    assert {name: (row["outcome"], row["code"]) for name, row in rows.items()} == dict.fromkeys(
        ("onnxruntime", "torch", "jax"), ("finished", "")
    )
    assert {row["precision"] for row in rows.values()} == {"fp32"}
    assert rows["torch"]["settings"]["precision"] == "fp16"


def test_wrong_answers_of_kernels_that_saturate_come_with_their_cause(tmp_path: Path) -> None:
    """ONNX Runtime's own tool quantizes weights that make pairs of products exceed sixteen bits."""
    quantization = pytest.importorskip("onnxruntime.quantization", reason="`make test` installs it and runs this")
    if {"avx512_vnni", "avx_vnni"} & flags(THIS_MACHINE):
        pytest.skip("no kernel saturates on a CPU with VNNI")
    whole, signed = product(tmp_path / "float.onnx", FLOAT), quantization.QuantType.QInt8
    rows = []
    for reduce_range in (False, True):
        file = tmp_path / f"reduced-{reduce_range}.onnx"
        quantization.quantize_dynamic(whole, file, weight_type=signed, reduce_range=reduce_range)
        rows.append(rows_of(file, "onnxruntime", exit_status=int(not reduce_range))["onnxruntime"])
    saturated, reduced = rows
    assert (saturated["outcome"], saturated["code"]) == ("disqualified", "E_OUTPUT")
    assert "reduce_range=True" in saturated["message"]
    assert (reduced["outcome"], reduced["code"]) == ("finished", "")
