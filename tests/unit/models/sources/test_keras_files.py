"""A Keras file of a user is read in safe mode, computed in float64, and run by Keras's own backends."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.frameworks.adapter_parts.answers import weights_of_tensors
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import hash_of
from fairlap.models.sources.bundle import inputs_file, reference_file, route_to, weights_file
from fairlap.models.sources.tensorflow_files.keras_exports import FILES, exported_to_openvino
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel, use_backend
from fairlap.models.spec import Integers, Tensor
from fairlap.race.equal_work.answers import answer_error, require_weights
from fairlap.request.fields.source import shapes_in
from keras_files import ROWS, lookup
from onnx_files import materials_of, opened, source_of

# Found, not imported: every process of pytest imports this file, and only one of them runs it.
pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("tensorflow", "keras"))), reason="`make test` installs TensorFlow and Keras and runs this"
)


def by_hand(folder: Path) -> np.ndarray:
    held = {name: array.astype(np.float64) for name, array in safetensors.read(weights_file(folder)).items()}
    inputs = safetensors.read(inputs_file(folder, "inputs"))
    found = held["table/embeddings"][inputs["ids"]].mean(axis=1) + inputs["x"]
    centred = found - found.mean(axis=-1, keepdims=True)
    found = centred / np.sqrt(found.var(axis=-1, keepdims=True) + 1e-3) * held["norm/gamma"] + held["norm/beta"]
    found = np.exp(found @ held["out/kernel"] + held["out/bias"])
    answers: np.ndarray = found / found.sum(axis=-1, keepdims=True)
    return answers


@pytest.mark.slow
def test_the_reference_is_the_model_in_float64(tmp_path: Path) -> None:
    folder, found = opened(source_of(lookup(tmp_path / "m.keras"), batch=3), tmp_path)
    (name,) = (tensor.name for tensor in found.spec.outputs)
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))[name], by_hand(folder), rtol=1e-12)
    assert found.notices == ()
    assert found.spec.inputs[0].fill == Integers(0, ROWS)
    assert found.batch == 3
    assert not route_to(found, "torch", "").why_not
    assert not route_to(found, "openvino", "onnx").why_not
    assert route_to(found, "mxnet", "").why_not


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", ["graph", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("eager", "xla"))]
)
def test_tensorflow_runs_it_with_the_weights_of_the_file(tmp_path: Path, variant: str) -> None:
    import tensorflow as tf

    materials = materials_of(source_of(lookup(tmp_path / "m.keras"), batch=3), tmp_path)
    work = materials.workload("inputs")
    implementation = work.implementation("tensorflow")
    model = implementation.build(work.weights)
    step = model if variant == "eager" else tf.function(model.__call__, jit_compile=variant == "xla", autograph=False)
    got = step({name: tf.convert_to_tensor(array) for name, array in work.inputs.items()})[0].numpy()
    (name,) = (tensor.name for tensor in work.spec.outputs)
    error = answer_error(name, "", got, materials.reference("inputs")[name], materials.tolerance(name))
    assert error.right
    assert error.relative is not None
    assert 0 < error.relative < 1e-6
    held = weights_of_tensors(work, implementation.canonical, model.variables_by_name)
    require_weights(materials, hash_of(held))


@pytest.mark.slow
def test_code_in_a_file_runs_only_with_trust(tmp_path: Path) -> None:
    def double(tensor: Any) -> Any:
        import keras

        return keras.layers.Lambda(lambda each: each * 2)(tensor)

    file = lookup(tmp_path / "m.keras", last=double)
    with pytest.raises(FairlapError) as refused:
        opened(source_of(file, batch=2), tmp_path)
    assert refused.value.code == "E_SOURCE_TRUST"
    folder, found = opened(source_of(file, batch=2, trust=True), tmp_path)
    (name,) = (tensor.name for tensor in found.spec.outputs)
    reference = safetensors.read(reference_file(folder, "inputs"))[name]
    np.testing.assert_allclose(reference, 2 * by_hand(folder), rtol=1e-12)


@pytest.mark.slow
def test_a_layer_that_keeps_float32_leaves_no_float64_reference(tmp_path: Path) -> None:
    import keras

    @keras.saving.register_keras_serializable("fairlap tests")
    class Narrow(keras.layers.Layer):  # type: ignore[misc]
        def call(self, tensor: Any) -> Any:
            return keras.ops.cast(tensor, "float32")

        def compute_output_spec(self, tensor: Any) -> Any:
            return keras.KerasTensor(tensor.shape, "float32")

    file = lookup(tmp_path / "m.keras", last=lambda tensor: Narrow()(tensor))
    _, found = opened(source_of(file, batch=2), tmp_path)
    assert [notice.code for notice in found.notices] == ["W_NO_REFERENCE"]
    assert "no float64 reference" in found.reference


@pytest.mark.slow_but("bindings3", "bindings0")
@pytest.mark.parametrize(
    ("bindings", "code"),
    [
        ({}, "E_MODEL_DIMENSIONS"),
        ({"shapes": shapes_in("ids:2x5")}, "E_MODEL_DIMENSIONS"),
        ({"shapes": shapes_in("ids:2x6,x:2x8")}, "E_MODEL_DIMENSIONS"),
        ({"batch": 2, "ranges": (("y", 0, 1),)}, "E_SHAPES"),
    ],
)
def test_sizes_that_are_open_or_do_not_fit_are_refused(tmp_path: Path, bindings: dict[str, Any], code: str) -> None:
    with pytest.raises(FairlapError) as refused:
        opened(source_of(lookup(tmp_path / "m.keras"), **bindings), tmp_path)
    assert refused.value.code == code


def test_half_precision_and_damaged_files_are_one_line(tmp_path: Path) -> None:
    lookup(tmp_path / "half.keras", dtype="mixed_bfloat16")
    whole = lookup(tmp_path / "m.keras").read_bytes()
    (tmp_path / "short.keras").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(tmp_path / "empty.keras", "w") as archive:
        archive.writestr("config.json", "{}")
    with zipfile.ZipFile(tmp_path / "escaping.keras", "w") as archive:
        archive.writestr("../outside.txt", "x")
    for name in ("half", "short", "empty", "escaping", "missing"):
        with pytest.raises(FairlapError) as refused:
            opened(source_of(tmp_path / f"{name}.keras", batch=2), tmp_path)
        assert refused.value.code == "E_SOURCE"
        assert "\n" not in str(refused.value)
    assert not (tmp_path.parent / "outside.txt").exists()


def test_weights_without_a_name_have_the_same_one_each_time(tmp_path: Path) -> None:
    use_backend("tensorflow")
    import keras

    class Scale(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.scale = self.add_weight(shape=(shape[-1],))

        def call(self, x: Any) -> Any:
            return x * self.scale

    def names() -> list[str]:
        x = keras.Input((4,), name="x")
        return list(KerasModel(keras.Model(x, Scale(name="scale")(x))).variables)

    assert names() == names() == ["scale/variable"]


NAMES_ON_A_BACKEND = """
import keras
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel

class Scale(keras.layers.Layer):
    def build(self, shape):
        self.scale, self.shift = self.add_weight(shape=(shape[-1],)), self.add_weight(shape=(shape[-1],), name="shift")

    def call(self, x):
        return x * self.scale + self.shift

x = keras.Input((4,), name="x")
print(*KerasModel(keras.Model(x, Scale(name="second")(Scale(name="first")(x)))).variables)
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_weights_without_a_name_have_the_same_one_on_each_backend(backend: str) -> None:
    pytest.importorskip(backend, reason="`make test` installs it and runs this")
    environment = {**os.environ, "KERAS_BACKEND": backend}
    command = [sys.executable, "-c", NAMES_ON_A_BACKEND]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["first/variable", "first/shift", "second/variable", "second/shift"]


def test_a_layer_of_ones_own_is_refused_with_what_to_name_instead(tmp_path: Path) -> None:
    use_backend("tensorflow")
    import keras

    class Own(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x + 1

    registered = keras.saving.register_keras_serializable("mine")(Own)
    x = keras.Input((4,), name="x")
    keras.Model(x, registered()(x)).save(tmp_path / "m.keras")
    keras.saving.get_custom_objects().clear()
    with pytest.raises(FairlapError) as refused:
        opened(source_of(tmp_path / "m.keras", batch=2), tmp_path)
    assert refused.value.code == "E_SOURCE"
    assert "module:function" in str(refused.value)


def test_a_silu_adds_no_output_to_the_conversion_for_openvino(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino", reason="`make test` installs it and runs this")
    use_backend("tensorflow")
    import keras

    x = keras.Input((4,), name="x")
    model = keras.Model(x, keras.layers.Dense(2, name="out")(keras.layers.Dense(3, activation="silu")(x)))
    route = exported_to_openvino(KerasModel(model), [Tensor("x", ("batch", 4))], tmp_path)
    assert route.why_not == ""
    given = np.ones((1, 4), np.float32)
    whole = {"INFERENCE_PRECISION_HINT": "f32"}
    [answer] = openvino.compile_model(tmp_path / FILES["openvino"], "CPU", whole)(given).values()
    np.testing.assert_allclose(answer, model(given).numpy(), rtol=1e-5)
