"""The example's library of a custom operator races in ONNX Runtime, with answers compared, and only with trust."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fairlap

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
EXAMPLE = Path(__file__).parents[2] / "docs/examples/onnxruntime/custom_ops.cc"
WIDTH = 256
OPTIONS = ("--threads", "1", "--seconds", "100ms", "--blocks", "2", "--json", "-q")
BY_HAND = """
import sys, time, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.register_custom_ops_library("./custom_ops.so")
session = onnxruntime.InferenceSession("fused.onnx", options, providers=["CPUExecutionProvider"])
x = numpy.random.default_rng(1).standard_normal((8, int(sys.argv[1])), dtype=numpy.float32)
times = []
for _ in range(3000):
    began = time.perf_counter()
    session.run(None, {"x": x})
    times.append(time.perf_counter() - began)
print(numpy.median(times) * 1e9)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime", reason="`make test-slow` installs it and runs this")
    if shutil.which("g++") is None:
        pytest.skip("the example is compiled with g++; `make test-slow` runs this where it is installed")
    place = tmp_path_factory.mktemp("operators")
    source = EXAMPLE.read_text()
    compiled(source, place / "custom_ops.so")
    right = "from[each] / (1.0f + std::exp(-from[each]))"
    assert right in source
    compiled(source.replace(right, f"1.01f * {right}"), place / "wrong.so")
    (place / "text.so").write_text("no library\n")
    write_model(place / "plain.onnx", fused=False)
    write_model(place / "fused.onnx", fused=True)
    return place


def compiled(source: str, library: Path) -> None:
    """Compile it with the command that its comment has."""
    file = library.with_suffix(".cc")
    file.write_text(source)
    [words] = [line.split() for line in source.splitlines() if "g++" in line]
    options = [word for word in words if word.startswith("-") and word != "-o"]
    subprocess.run(["g++", *options, str(file), "-o", str(library)], check=True)


def write_model(path: Path, *, fused: bool) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5
    standard = [helper.make_node("Sigmoid", ["h"], ["s"]), helper.make_node("Mul", ["h", "s"], ["a"])]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            *([helper.make_node("Silu", ["h"], ["a"], domain="example.ops")] if fused else standard),
            helper.make_node("MatMul", ["a", "w"], ["y"]),
        ],
        "silu",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, WIDTH])],
        [numpy_helper.from_array(weight, "w")],
    )
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid("example.ops", 1)] if fused else [])]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def raced(folder: Path, models: str, *on: str) -> dict[str, dict[str, Any]]:
    done = fairlap("compare", models, "--on", ",".join(on), "--trust", *OPTIONS, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}


def test_a_fused_operator_races_against_the_standard_ones_and_takes_as_long_as_by_hand(folder: Path) -> None:
    name = "onnxruntime:custom_ops=./custom_ops.so"
    for _ in range(3):  # the machine may be busy
        found = raced(folder, "plain.onnx,fused.onnx", name)
        plain, fused = (found[f"{name}:file={file}.onnx"] for file in ("plain", "fused"))
        assert [each["outcome"] for each in (plain, fused)] == ["finished"] * 2
        assert not any("W_NO_REFERENCE" in json.dumps(each["warnings"]) for each in (plain, fused))
        assert fused["settings"]["custom_ops"].startswith("custom_ops.so sha256:")
        command = [sys.executable, "-c", BY_HAND, str(WIDTH)]
        by_hand = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        if 0.75 < fused["latency_p50_ns"]["value"] / float(by_hand.stdout) < 1.25:
            return
    pytest.fail(f"{fused['latency_p50_ns']}, by hand {by_hand.stdout}")


def test_one_library_is_compared_with_the_first_and_one_that_is_wrong_or_missing_ends_alone(folder: Path) -> None:
    right, wrong, text = (f"onnxruntime:custom_ops=./{name}.so" for name in ("custom_ops", "wrong", "text"))
    found = raced(folder, "fused.onnx", right, wrong, text, "onnxruntime")
    assert found[right]["outcome"] == "finished"
    assert "W_NO_REFERENCE" in json.dumps(found[right]["warnings"])
    assert (found[wrong]["outcome"], found[wrong]["code"]) == ("disqualified", "E_OUTPUT")
    assert (found[text]["outcome"], found[text]["code"]) == ("unsupported", "E_UNSUPPORTED")
    assert "\n" not in found[text]["message"]
    assert found["onnxruntime"]["outcome"] == "failed"


def test_nothing_is_loaded_without_trust(folder: Path) -> None:
    options = ("--on", "onnxruntime:custom_ops=./custom_ops.so", *OPTIONS)
    done = fairlap("compare", "fused.onnx", *options, cwd=folder)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "E_SOURCE_TRUST"
