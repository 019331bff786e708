"""What the real compilers report: graphs, breaks, fusion, and compiling again for batches that they have not seen."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import fairlap
import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.race.around_blocks.compilation_result import AtBatch, CompilationResult
from fairlap.request.fields.sizes.other_inputs import OtherInputs, batches_and_others
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Work
from fairlap.scenarios.untimed.compilation_messages import Resized
from one_block import run_of_one_block

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

BATCHES = (1, 7, 4)  # the last one is that of the work
OTHERS = (OtherInputs("float32"), OtherInputs("float64"), OtherInputs("bfloat16"))
BROKEN = """
import torch
from torch import nn


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(784, 256), nn.LayerNorm(256), nn.Linear(256, 10)

    def forward(self, image):
        hidden = self.norm(nn.functional.gelu(self.first(image)))
        torch._dynamo.graph_break()
        return self.second(hidden)


def model():
    torch.manual_seed(0)
    return Broken(), torch.randn(8, 784)
"""


def require(contestants: str) -> None:
    for name in contestants.split(","):
        if not is_importable(framework_named(contestant_named(name).framework)):
            pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")


@cache
def found_on(contestants: str, model: str, mode: str = "infer") -> dict[str, CompilationResult]:
    """Once for all contestants."""
    training = Training(Sgd(lr=0.01)) if mode == "train" else None
    work = Work(model, 4, mode, training=training)  # type: ignore[arg-type]
    others = (*OTHERS, OtherInputs(size="image", to=32)) if model == "convnet" else OTHERS
    run = run_of_one_block(contestants, work, recompile=BATCHES, recompile_inputs=others)
    found = {each.contestant: each for each in run.compilations}
    assert list(found) == contestants.split(","), [process.message for process in run.processes]
    assert {each.message for each in found.values()} == {""}
    return found


def require_counts_to_fall(found: CompilationResult) -> None:
    operators = found.described.operators
    assert operators is not None, found.described.absent
    assert 0 < operators.after < operators.before
    assert operators.counted


def require_each_new_batch_to_be_compiled(found: CompilationResult) -> dict[int, AtBatch]:
    by_batch = {each.batch: each for each in found.batches if each.inputs is None}
    assert {batch: each.resized.compiled for batch, each in by_batch.items()} == {1: 1, 7: 1, 4: 0}
    for each in by_batch.values():
        assert each.resized.why == ""
        assert each.resized.call_s is not None
        assert each.resized.built_s is None
    new, known = by_batch[7].resized, by_batch[4].resized
    assert new.first_s is not None
    assert known.first_s is not None
    assert new.first_s > new.call_s  # type: ignore[operator]
    other = by_batch[7]  # on a busy machine preparing once more may take too long
    assert other.prepared_call_s is not None or "30 s" in other.why_not_prepared
    return by_batch


def test_jax_compiles_again_at_each_new_batch_and_says_what_differs() -> None:
    require("jax")
    found = found_on("jax", "mlp")["jax"]
    assert (found.described.graphs, found.described.graph_breaks) == (1, None)
    assert found.described.absent["graph_breaks"]
    by_batch = require_each_new_batch_to_be_compiled(found)
    assert any("f32[7,784]" in reason for reason in by_batch[7].resized.reasons)
    assert by_batch[4].resized.reasons == ()
    require_counts_to_fall(found)


def on_others(found: CompilationResult) -> dict[str, Resized]:
    return {each.text: each.resized for each in found.batches if each.inputs is not None}


def test_jax_compiles_again_for_a_type_that_it_promotes_and_says_that_it_has_no_wider_one() -> None:
    require("jax")
    found = on_others(found_on("jax", "mlp")["jax"])
    assert (found["float32"].compiled, found["bfloat16"].compiled) == (0, 1)
    assert any("bf16[4,784]" in reason for reason in found["bfloat16"].reasons)
    assert found["float64"].stall_s is None
    assert "jax_enable_x64" in found["float64"].why


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_session_refuses_another_type_in_one_plain_line_and_is_built_again_for_another_size(name: str) -> None:
    require("onnxruntime,openvino")
    found = on_others(found_on("onnxruntime,openvino", "convnet")[name])
    assert found["float32"].compiled == 0
    for kind in ("float64", "bfloat16"):
        assert found[kind].stall_s is None
        assert "the graph declares the types" in found[kind].why
        assert len(found[kind].why.splitlines()) == 1
    assert found["image=32"].built_s is not None


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_session_of_one_batch_is_built_again_and_its_graph_is_fused(name: str) -> None:
    require("onnxruntime,openvino")
    found = found_on("onnxruntime,openvino", "convnet")[name]
    assert not found.described.takes_any_batch
    for each in found.batches[: len(BATCHES)]:
        assert (each.resized.built_s is not None) == (each.batch != 4)
        assert each.resized.stall_s is not None
        assert each.resized.reasons == (() if each.batch == 4 else ("it is built for batch 4 alone",))
    require_counts_to_fall(found)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tensorflow:graph", "tensorflow:xla"])
def test_a_function_of_tensorflow_is_traced_again_at_each_new_batch(name: str) -> None:
    require("tensorflow")
    found = found_on("tensorflow,tensorflow:graph,tensorflow:xla", "mlp")[name]
    assert found.described.graphs == 1
    require_each_new_batch_to_be_compiled(found)
    operators = found.described.operators
    assert operators is not None, found.described.absent
    assert 0 < operators.after <= operators.before  # without oneDNN, TensorFlow fuses none of this model


@pytest.mark.slow
def test_tensorflows_optimizer_makes_one_operator_of_a_convolution_its_bias_and_relu() -> None:
    require("tensorflow")
    import numpy as np
    import tensorflow as tf
    from fairlap.frameworks.adapter_parts.compilation.tensorflow_compilation import compilation_of

    kernel, bias = tf.Variable(np.ones((3, 3, 3, 8), np.float32)), tf.Variable(np.ones(8, np.float32))

    layer = tf.function(lambda images: tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, kernel, 1, "SAME"), bias)))
    images = tf.constant(np.ones((2, 8, 8, 3), np.float32))
    compilation = compilation_of(layer, "graph", lambda: layer, lambda: images, lambda *_: layer)
    assert compilation.operators is not None
    operators = compilation.operators()
    assert (operators.before, operators.after) == (3, 1)


@pytest.mark.thorough
def test_what_runs_eagerly_compiles_nothing_at_any_batch() -> None:
    require("tensorflow")
    found = found_on("tensorflow,tensorflow:graph,tensorflow:xla", "mlp")["tensorflow"]
    assert (found.described.graphs, found.described.operators) == (None, None)
    assert set(found.described.absent) == {"graphs", "graph_breaks", "operators"}
    assert all(each.resized.compiled is None and each.resized.call_s for each in found.batches[: len(BATCHES)])
    assert "it refused float64 inputs" in on_others(found)["float64"].why


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_torch_compile_makes_one_graph_of_mlp_and_fewer_kernels_than_operators() -> None:
    require("torch")
    found = found_on("torch:compile", "mlp")["torch:compile"]
    assert (found.described.graphs, found.described.graph_breaks, found.described.break_reasons) == (1, 0, ())
    by_batch = require_each_new_batch_to_be_compiled(found)
    assert any("size mismatch" in reason for reason in by_batch[1].resized.reasons)
    require_counts_to_fall(found)
    assert "it refused float64 inputs" in on_others(found)["float64"].why


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_planted_break_makes_two_graphs_and_its_reason_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("torch")
    (tmp_path / "broken_in_two.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    results = fairlap.compare(
        "broken_in_two:model", on="torch:compile", recompile=(12,), blocks=1, seconds=0.05, threads=1
    )
    [row], [found] = results.rows, results.run.compilations
    assert row.outcome == "finished", row.message
    assert (row.graphs, row.graph_breaks) == (2, 1)
    assert "broken_in_two.py:" in found.described.break_reasons[0]
    assert "graph_break" in found.described.break_reasons[0]
    assert row.operators_before is not None
    assert row.kernels_after is not None
    assert row.recompile_stall_s["12"] > 0
    assert found.batches[0].resized.compiled == 2  # both of its parts
    assert found.batches[0].resized.reasons


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "other"),
    [("gpt2_prefill", "tokens=16"), ("bert_base", "tokens=16"), ("resnet50", "image=64"), ("mobilenet_v2", "image=64")],
)
def test_models_with_a_free_size_are_called_at_another_one_in_every_framework(model: str, other: str) -> None:
    on = "torch,jax,tensorflow:graph,onnxruntime,openvino"
    require(on)
    _, others = batches_and_others([other])
    run = run_of_one_block(on, Work(model, 1), recompile_inputs=others)
    assert [each.contestant for each in run.compilations] == on.split(",")
    for found in run.compilations:
        [at] = found.batches
        assert (found.message, at.resized.why) == ("", "")
        assert at.resized.call_s is not None


@pytest.mark.thorough
def test_a_quantized_session_says_in_plain_words_that_it_runs_at_no_other_batch() -> None:
    require("onnxruntime")
    run = run_of_one_block("onnxruntime", Work("convnet", 4, "infer", "int8"), recompile=(7,))
    [found] = run.compilations
    assert "calibration data of batch 4" in found.batches[0].resized.why
    assert "ONNXRuntimeError" not in found.batches[0].resized.why


@pytest.mark.thorough
def test_steps_of_training_are_compiled_again_at_each_new_batch_too() -> None:
    require("jax,tensorflow")
    for found in found_on("jax,tensorflow:xla", "mlp", "train").values():
        assert found.described.graphs == 1
        require_each_new_batch_to_be_compiled(found)
        require_counts_to_fall(found)
