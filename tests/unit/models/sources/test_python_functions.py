"""What a user's function returns decides the kind of model: JAX and Keras here, PyTorch in ``test_torch_sources``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.array_files import safetensors
from fairlap.models.sources import bundle
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.kinds.python_function import PythonFunction
from fairlap.request.fields.source import Source
from onnx_files import materials_of, opened

IN_JAX = """
import jax
import jax.numpy as jnp
import numpy as np

def parts():
    drawn = np.random.default_rng(0)
    params = {
        "layers": [{"kernel": drawn.normal(size=(8, 16)), "bias": np.zeros(16, np.float32)}],
        "table": jnp.asarray(drawn.normal(size=(10, 4)), jnp.float32),
        "steps": jnp.int32(3),
    }
    return params, {"x": drawn.normal(size=(3, 8)), "ids": np.arange(3)}, np.full((3, 1), 0.5)

def forward(params, batch, scale):
    hidden = jnp.tanh(batch["x"] @ params["layers"][0]["kernel"] + params["layers"][0]["bias"])
    return {"hidden": hidden * scale, "rows": (params["table"][batch["ids"]] * params["steps"],)}

def model():
    params, batch, scale = parts()
    return forward, params, (batch, scale)

def by_name():
    params, batch, scale = parts()
    return forward, params, {"scale": scale, "batch": batch}

def casting():
    params, batch, scale = parts()
    return (lambda *given: jnp.float32(forward(*given)["hidden"] * 2)), params, (batch, scale)

def in_bfloat16():
    params, batch, scale = parts()
    return forward, {**params, "table": params["table"].astype(jnp.bfloat16)}, (batch, scale)

def raising():
    params, batch, _ = parts()
    return forward, params, (batch,)

def nothing():
    return {"no": "model"}

def inputs_missing():
    return forward, parts()[0]
"""

IN_KERAS = """
import keras
import numpy as np

class Twice(keras.layers.Layer):
    def call(self, tensor):
        return tensor * 2

def model():
    keras.utils.set_random_seed(0)
    first, second = keras.Input((6,), name="z"), keras.Input((6,), name="a")
    added = Twice()(keras.layers.Add()([first, second]))
    outputs = {"scores": keras.layers.Dense(3)(added), "chances": keras.layers.Dense(2, activation="softmax")(added)}
    return keras.Model({"z": first, "a": second}, outputs)

def sequential():
    layers = [keras.Input((4, 5)), keras.layers.LSTM(6), keras.layers.Dense(3)]
    return keras.Sequential(layers), np.random.default_rng(0).normal(size=(2, 4, 5))

def too_few_inputs():
    return model(), [np.ones((2, 6))]
"""


def source(tmp_path: Path, code: str, function: str, **bindings: Any) -> Source:
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(code)
    return Source(f"{name}:{function}", f"{name}:{function}", str(tmp_path), **bindings)


def in_jax(tmp_path: Path, function: str, **bindings: Any) -> Source:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    return source(tmp_path, IN_JAX, function, **bindings)


def in_keras(tmp_path: Path, function: str, **bindings: Any) -> Source:
    for module in ("tensorflow", "keras"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")
    return source(tmp_path, IN_KERAS, function, **bindings)


@pytest.mark.slow_but("by_name")
@pytest.mark.parametrize("function", ["model", "by_name"])
def test_leaves_of_a_jax_model_have_names_and_its_reference_is_in_float64(tmp_path: Path, function: str) -> None:
    folder, found = opened(in_jax(tmp_path, function), tmp_path)
    weights, inputs = safetensors.read(weights_file(folder)), safetensors.read(inputs_file(folder, "changed"))
    assert set(weights) == {"layers.0.kernel", "layers.0.bias", "table"}
    assert {each.name for each in found.spec.inputs} == {"batch_x", "batch_ids", "scale"}
    assert {each.dtype for each in found.spec.inputs} == {"float32", "int32"}
    held = {name: array.astype(np.float64) for name, array in weights.items()}
    hidden = np.tanh(inputs["batch_x"].astype(np.float64) @ held["layers.0.kernel"] + held["layers.0.bias"])
    reference = safetensors.read(reference_file(folder, "changed"))
    np.testing.assert_allclose(reference["hidden"], hidden * inputs["scale"], rtol=1e-12)
    np.testing.assert_allclose(reference["rows.0"], held["table"][inputs["batch_ids"]] * 3, rtol=1e-12)
    assert found.notices == ()


def test_jax_and_tensorflow_run_a_jax_function_with_the_weights_that_were_read(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    materials = materials_of(in_jax(tmp_path, "model"), tmp_path)
    work, reference = materials.workload("inputs"), materials.reference("inputs")
    own = PythonFunction.implementation(bundle.bundle_in(materials.folder), materials.folder, "jax")
    import jax
    import tensorflow as tf

    answers = [np.asarray(each) for each in jax.jit(own.forward)(own.params(work.weights), dict(work.inputs))]
    assert set(own.canonical(own.params(work.weights))) == set(work.weights)
    module = PythonFunction.implementation(bundle.bundle_in(materials.folder), materials.folder, "tensorflow").build(
        {name: 2 * array for name, array in work.weights.items()}
    )
    for name, variable in module.variables_by_name.items():
        np.testing.assert_array_equal(variable.numpy(), 2 * work.weights[name])
        variable.assign(work.weights[name])
    tensors = {name: tf.convert_to_tensor(array) for name, array in work.inputs.items()}
    for mine in (answers, [each.numpy() for each in module(tensors)]):
        for tensor, got in zip(work.spec.outputs, mine, strict=True):
            np.testing.assert_allclose(got, reference[tensor.name], rtol=1e-4, atol=1e-5)
    routes = bundle.bundle_in(materials.folder).routes
    assert routes["tensorflow"].conversion_s
    assert routes["litert"].name
    assert routes["torch"].why_not
    assert routes["onnx"].why_not


@pytest.mark.slow
def test_a_cast_in_the_code_of_a_jax_model_leaves_no_float64_reference(tmp_path: Path) -> None:
    _, found = opened(in_jax(tmp_path, "casting"), tmp_path)
    assert "W_NO_REFERENCE" in [notice.code for notice in found.notices]
    assert "float32" in found.reference


@pytest.mark.parametrize("function", ["in_bfloat16", "raising", "nothing", "inputs_missing"])
def test_a_function_that_gives_no_model_to_race_is_refused(tmp_path: Path, function: str) -> None:
    with pytest.raises(FairlapError) as refused:
        opened(in_jax(tmp_path, function), tmp_path)
    assert refused.value.code == "E_SOURCE"
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_keras_model_is_saved_with_its_own_layers_and_exported(tmp_path: Path) -> None:
    folder, found = opened(in_keras(tmp_path, "model", batch=2), tmp_path)
    weights, inputs = safetensors.read(weights_file(folder)), safetensors.read(inputs_file(folder, "inputs"))
    added = 2 * (inputs["z"].astype(np.float64) + inputs["a"])
    kernel = next(array for name, array in weights.items() if array.shape == (6, 3))
    expected = added @ kernel.astype(np.float64)
    reference = safetensors.read(reference_file(folder, "inputs"))
    (scores,) = (array for array in reference.values() if array.shape == (2, 3))
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    for framework, package in (("onnx", "onnxruntime"), ("openvino", "openvino")):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
        answers = answers_of_file(PythonFunction.implementation(found, folder, framework).file, inputs)
        assert set(answers) == set(reference)
        for name, exact in reference.items():
            np.testing.assert_allclose(answers[name], exact, rtol=1e-4, atol=1e-5)


def answers_of_file(file: Path, inputs: Any) -> dict[str, np.ndarray]:
    if file.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(inputs)), strict=True))
    import openvino

    compiled = openvino.Core().compile_model(str(file), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled(dict(inputs))
    return {each.get_any_name(): np.array(found[each]) for each in compiled.outputs}


@pytest.mark.slow
def test_example_inputs_of_a_keras_model_bind_its_sizes(tmp_path: Path) -> None:
    folder, found = opened(in_keras(tmp_path, "sequential"), tmp_path)
    assert found.batch == 2
    (given,) = safetensors.read(inputs_file(folder, "inputs")).values()
    np.testing.assert_array_equal(given, np.random.default_rng(0).normal(size=(2, 4, 5)).astype(np.float32))
    with pytest.raises(FairlapError) as refused:
        opened(in_keras(tmp_path, "too_few_inputs"), tmp_path)
    assert refused.value.code == "E_SOURCE_INPUTS"
