"""A SavedModel folder of a user is read without what reaches files, computed in float64, and run by two frameworks."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.frameworks.adapter_parts.answers import weights_of_tensors
from fairlap.frameworks.adapter_parts.litert_files import main
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import hash_of
from fairlap.models.sources.bundle import inputs_file, reference_file, route_to
from fairlap.race.equal_work.answers import answer_error, require_weights
from fairlap.request.fields.source import shapes_in
from machine_marks import needs_package
from onnx_files import drawn, materials_of, opened, source_of

pytestmark = needs_package("tensorflow")

WIDTH, CLASSES = 8, 4


def saved(folder: Path, extra: Any = lambda tensor: tensor) -> Path:
    """Two outputs, in an order that is not that of their names."""
    import tensorflow as tf

    class Net(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.kernel = tf.Variable(drawn(WIDTH, CLASSES), name="kernel")
            self.bias = tf.Variable(drawn(CLASSES), name="bias")
            self.optimizer = tf.Module()
            self.momentum = tf.Variable(drawn(WIDTH, CLASSES), name="momentum")

        @tf.function(input_signature=[tf.TensorSpec((None, WIDTH), name="x")])  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> dict[str, Any]:
            hidden = extra(tf.matmul(x, self.kernel) + self.bias)
            return {"wide": tf.concat([hidden, hidden * 0.1], -1), "narrow": tf.tanh(hidden)}

    tf.saved_model.save(Net(), str(folder))
    return folder


def by_hand(x: np.ndarray) -> np.ndarray:
    answers: np.ndarray = x.astype(np.float64) @ drawn(WIDTH, CLASSES).astype(np.float64) + drawn(CLASSES)
    return answers


def test_the_reference_is_the_frozen_graph_in_float64(tmp_path: Path) -> None:
    folder, found = opened(source_of(saved(tmp_path / "net"), batch=3), tmp_path)
    x = safetensors.read(inputs_file(folder, "inputs"))["x"]
    hidden = by_hand(x)
    reference = safetensors.read(reference_file(folder, "inputs"))
    np.testing.assert_allclose(reference["wide"][:, :CLASSES], hidden, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(reference["narrow"], np.tanh(hidden), rtol=1e-12, atol=1e-13)
    assert found.notices == ()
    assert route_to(found, "jax", "").why_not


def test_openvino_binds_inputs_and_outputs_by_their_names(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="`make test` installs it and runs this")
    materials = materials_of(source_of(saved(tmp_path / "net"), batch=3), tmp_path)
    work = materials.workload("inputs")
    contestant = framework_named("openvino")().prepare(work, Settings(threads=1), lambda _: nullcontext())
    got = contestant.outputs(contestant.bind(work.inputs)())
    for name in ("wide", "narrow"):
        assert answer_error(name, "", got[name], materials.reference("inputs")[name], materials.tolerance(name)).right


def test_tensorflow_runs_it_with_the_weights_of_the_folder(tmp_path: Path) -> None:
    import tensorflow as tf

    materials = materials_of(source_of(saved(tmp_path / "net"), batch=3), tmp_path)
    work = materials.workload("inputs")
    implementation = work.implementation("tensorflow")
    model = implementation.build(work.weights)
    results = tf.function(model.__call__)({name: tf.constant(array) for name, array in work.inputs.items()})
    for tensor, got in zip(work.spec.outputs, results, strict=True):
        name = tensor.name
        expected = materials.reference("inputs")[name]
        assert answer_error(name, "", got.numpy(), expected, materials.tolerance(name)).right
    require_weights(materials, hash_of(weights_of_tensors(work, implementation.canonical, model.variables_by_name)))


@pytest.mark.slow
def test_litert_runs_what_tensorflow_converts(tmp_path: Path) -> None:
    interpreters = pytest.importorskip("ai_edge_litert.interpreter", reason="`make test` installs it and runs this")
    materials = materials_of(source_of(saved(tmp_path / "net"), batch=3), tmp_path)
    assert main(materials.package, "3", str(materials.weights_file), str(tmp_path / "m.tflite")) == 0
    interpreter = interpreters.Interpreter(model_path=str(tmp_path / "m.tflite"))
    got = interpreter.get_signature_runner()(**materials.workload("inputs").inputs)
    for name, expected in materials.reference("inputs").items():
        assert answer_error(name, "", got[name], expected, materials.tolerance(name)).right


def test_an_operator_that_reaches_files_needs_trust(tmp_path: Path) -> None:
    import tensorflow as tf

    def writing(tensor: Any) -> Any:
        with tf.control_dependencies([tf.io.write_file(str(tmp_path / "written"), "x")]):
            return tf.identity(tensor)

    folder = saved(tmp_path / "net", writing)
    with pytest.raises(FairlapError) as refused:
        opened(source_of(folder, batch=2), tmp_path)
    assert refused.value.code == "E_SOURCE_TRUST"
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    ("bindings", "code"),
    [
        ({}, "E_MODEL_DIMENSIONS"),
        ({"dims": "batch=2"}, "E_MODEL_DIMENSIONS"),
        ({"shapes": "x:2x9"}, "E_MODEL_DIMENSIONS"),
    ],
)
def test_sizes_that_are_open_or_do_not_fit_are_refused(tmp_path: Path, bindings: dict[str, str], code: str) -> None:
    source = source_of(saved(tmp_path / "net"), bindings.get("dims", ""), shapes=shapes_in(bindings.get("shapes", "")))
    with pytest.raises(FairlapError) as refused:
        opened(source, tmp_path)
    assert refused.value.code == code


def test_a_damaged_folder_is_one_line(tmp_path: Path) -> None:
    whole = saved(tmp_path / "net") / "saved_model.pb"
    content = whole.read_bytes()
    whole.write_bytes(content[: len(content) // 2])
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "saved_model.pb").write_bytes(content)
    for name in ("net", "none"):
        with pytest.raises(FairlapError) as refused:
            opened(source_of(tmp_path / name, batch=2), tmp_path)
        assert refused.value.code == "E_SOURCE"
        assert "\n" not in str(refused.value)


def test_what_an_optimizer_kept_for_each_variable_is_not_needed(tmp_path: Path) -> None:
    """As Keras 2 saves it: TensorFlow's loader fails on an object that has no class here."""
    from tensorflow.core.protobuf import saved_model_pb2

    folder = saved(tmp_path / "m")
    model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    nodes = model.meta_graphs[0].object_graph_def.nodes
    places = {each.local_name: each.node_id for each in nodes[0].children}
    nodes[places["optimizer"]].slot_variables.add(
        original_variable_node_id=places["kernel"], slot_name="m", slot_variable_node_id=places["momentum"]
    )
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    _, found = opened(source_of(folder, batch=3), tmp_path)
    assert found.spec.inputs[0].shape == (3, WIDTH)
