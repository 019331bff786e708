"""Every model is what it says: as many parameters as published, names that tell apart, a reference that answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fairlap.bench_models.elementary import gelu
from fairlap.bench_models.transformer.numpy_layers import attention
from fairlap.errors import InvalidRequest
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.reference import answers_in_float32
from fairlap.models.registry import find, workload_names
from fairlap.models.workload import Workload

MODELS = workload_names()
QUICK_PARAMETERS = 30_000_000  # a reference this large answers within seconds


def workload(model: str, batch: int = 1) -> Workload:
    found = find(model)
    spec = found.spec
    return Workload(
        spec, found.package, batch, "infer", "fp32", draw_weights(spec, 0), draw_inputs(spec, batch, 0), None
    )


def answers(work: Workload) -> dict[str, np.ndarray]:
    weights = {name: array.astype(np.float64) for name, array in work.weights.items()}
    inputs = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in work.inputs.items()}
    told: dict[str, np.ndarray] = work.implementation_of_reference().forward(weights, inputs)
    return told


def test_there_are_models() -> None:
    assert {"mlp", "convnet"} <= set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_the_weights_add_up_to_the_published_number_of_parameters(model: str) -> None:
    spec = find(model).spec
    assert spec.trained_parameters() == spec.parameters


@pytest.mark.parametrize("model", MODELS)
def test_every_name_stands_for_one_thing(model: str) -> None:
    spec = find(model).spec
    for group in (spec.inputs, spec.outputs, spec.weights):
        names = [each.name for each in group]
        assert len(set(names)) == len(names)
    assert spec.name == model


@pytest.mark.parametrize("model", [name for name in MODELS if find(name).spec.parameters < QUICK_PARAMETERS])
def test_the_reference_gives_every_output_in_its_shape_and_of_order_one(model: str) -> None:
    work = workload(model)
    told = answers(work)
    assert set(told) == {tensor.name for tensor in work.spec.outputs}
    for tensor in work.spec.outputs:
        assert told[tensor.name].shape == tensor.sized(1)
        assert told[tensor.name].dtype == np.float64
        assert 0.01 < float(np.abs(told[tensor.name]).max()) < 1000


@pytest.mark.parametrize("model", [name for name in MODELS if find(name).spec.parameters < QUICK_PARAMETERS])
def test_items_of_a_batch_do_not_see_each_other(model: str) -> None:
    pair = workload(model, 2)
    alone = replace(pair, batch=1, inputs={name: array[:1] for name, array in pair.inputs.items()})
    for name, value in answers(pair).items():
        np.testing.assert_allclose(value[:1], answers(alone)[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [each for each in MODELS if find(each).spec.parameters < QUICK_PARAMETERS])
def test_the_reference_stays_in_the_precision_that_it_is_given(model: str) -> None:
    assert {told.dtype for told in answers_in_float32(workload(model)).values()} == {np.dtype(np.float32)}


def test_attention_and_gelu_stay_in_the_precision_that_they_are_given() -> None:
    tokens = np.ones((1, 2, 4), np.float32)
    assert attention(tokens, tokens, tokens, 2, np.ones((2, 2), bool)).dtype == np.float32
    assert gelu(tokens).dtype == np.float32


def test_an_unknown_model_is_refused_with_near_ones() -> None:
    with pytest.raises(InvalidRequest, match="did you mean convnet"):
        find("convent")


def test_listing_models_imports_none(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from fairlap.models.registry import workload_names; workload_names();"
        "print([name for name in sys.modules if name.startswith('fairlap.bench_models.')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("model", [name for name in MODELS if 0 < find(name).spec.parameters < QUICK_PARAMETERS])
def test_the_onnx_graph_is_what_its_checker_accepts(model: str) -> None:
    onnx = pytest.importorskip("onnx")
    work = workload(model)
    onnx.checker.check_model(work.implementation("onnx").build(work.weights, 2), full_check=True)
