"""A user's ONNX file becomes a work: its sizes bound, its inputs drawn in range, its float64 reference computed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.onnx_graphs.imported_reference import imported_reference
from fairlap.models.spec import Integers
from fairlap.race.equal_work.materials import IN_TURN, UNSEEN
from fairlap.request.fields.source import range_in, shapes_in
from onnx_files import (
    BOUND,
    ROWS,
    answers_by_hand,
    code_of,
    drawn,
    masked_lookup,
    materials_of,
    one_node,
    opened,
    source_of,
    weights,
)

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT, INT64, BOOL, FLOAT16, DOUBLE = 1, 7, 9, 10, 11


def test_the_reference_is_the_graph_in_float64_on_every_set_of_inputs(tmp_path: Path) -> None:
    folder, bundle = opened(source_of(masked_lookup(tmp_path / "m.onnx"), BOUND), tmp_path)
    held = {name: array.astype(np.float64) for name, array in safetensors.read(weights_file(folder)).items()}
    assert set(held) == set(weights())
    for which in (*IN_TURN, *UNSEEN):
        inputs = safetensors.read(inputs_file(folder, which))
        expected = answers_by_hand(held, inputs["ids"], inputs["mask"])
        np.testing.assert_allclose(safetensors.read(reference_file(folder, which))["logits"], expected, rtol=1e-12)
    assert bundle.batch == 2
    assert [(tensor.name, tensor.shape, tensor.dtype) for tensor in bundle.spec.outputs] == [
        ("logits", (2, 6, 4), "float32")
    ]


def test_ids_are_drawn_from_the_rows_of_their_table_and_masks_from_0_and_1(tmp_path: Path) -> None:
    folder, bundle = opened(source_of(masked_lookup(tmp_path / "m.onnx"), "batch=8,sequence=64"), tmp_path)
    assert {tensor.name: tensor.fill for tensor in bundle.spec.inputs} == {
        "ids": Integers(0, ROWS),
        "mask": Integers(0, 2, required=False),
    }
    inputs = safetensors.read(inputs_file(folder, "inputs"))
    assert inputs["ids"].max() == ROWS - 1
    assert set(np.unique(inputs["mask"])) == {0, 1}
    assert (inputs["mask"][:, 0] == 1).all()


def test_a_range_that_is_asked_for_goes_before_the_one_that_is_found(tmp_path: Path) -> None:
    source = source_of(masked_lookup(tmp_path / "m.onnx"), BOUND, ranges=(range_in("ids:3..5"),))
    folder, _ = opened(source, tmp_path)
    ids = safetensors.read(inputs_file(folder, "inputs"))["ids"]
    assert (ids.min(), ids.max()) == (3, 5)


@pytest.mark.parametrize(
    ("dims", "shapes", "batch"),
    [("batch=3,sequence=5", "", None), ("", "ids:3x5", None), ("sequence=5", "", 3), ("", "ids:3x5,mask:[3,5]", None)],
)
def test_sizes_are_bound_by_name_by_shape_or_by_batch(
    tmp_path: Path, dims: str, shapes: str, batch: int | None
) -> None:
    source = source_of(masked_lookup(tmp_path / "m.onnx"), dims, shapes=shapes_in(shapes), batch=batch)
    _, bundle = opened(source, tmp_path)
    assert [tensor.shape for tensor in bundle.spec.inputs] == [(3, 5), (3, 5)]
    assert bundle.batch == 3


@pytest.mark.parametrize(
    ("dims", "shapes", "code"),
    [
        ("", "", "E_MODEL_DIMENSIONS"),
        ("batch=2", "", "E_MODEL_DIMENSIONS"),
        ("batch=2,length=4", "", "E_MODEL_DIMENSIONS"),
        ("", "words:2x4", "E_MODEL_DIMENSIONS"),
        ("", "ids:2x4x1", "E_MODEL_DIMENSIONS"),
        ("", "ids:2x4,mask:2x5", "E_SHAPES"),
        ("batch=3", "ids:2x4", "E_SHAPES"),
    ],
)
def test_sizes_that_are_missing_unknown_or_contradictory_are_refused(
    tmp_path: Path, dims: str, shapes: str, code: str
) -> None:
    source = source_of(masked_lookup(tmp_path / "m.onnx"), dims, shapes=shapes_in(shapes))
    assert code_of(source, tmp_path) == code


def test_external_data_in_the_folder_is_read_and_changes_the_work(tmp_path: Path) -> None:
    model = onnx.load(masked_lookup(tmp_path / "m.onnx"))
    path = tmp_path / "external.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="external.data", size_threshold=0)
    folder, _ = opened(source_of(path, BOUND), tmp_path)
    np.testing.assert_array_equal(safetensors.read(weights_file(folder))["table"], weights()["table"])
    data = bytearray((tmp_path / "external.data").read_bytes())
    data[3] ^= 0x80  # a sign
    (tmp_path / "external.data").write_bytes(data)
    assert opened(source_of(path, BOUND), tmp_path)[0] != folder


@pytest.mark.parametrize("location", ["../outside.data", "/etc/hostname", "link.data"])
def test_external_data_outside_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "outside.data").write_bytes(bytes(10_000_000))
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.data").symlink_to(tmp_path / "outside.data")
    model = onnx.load(masked_lookup(inner / "m.onnx"))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path = inner / "escaping.onnx"
    path.write_bytes(model.SerializeToString())
    assert code_of(source_of(path, BOUND), tmp_path) == "E_MODEL_FILE"


def test_a_truncated_file_a_pickle_and_a_sparse_one_of_five_gigabytes_are_refused(tmp_path: Path) -> None:
    import pickle

    whole = masked_lookup(tmp_path / "m.onnx").read_bytes()
    for name, content in (("short", whole[: len(whole) // 2]), ("pickle", pickle.dumps({"a": 1})), ("empty", b"")):
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(content)
        assert code_of(source_of(path, BOUND), tmp_path) == "E_MODEL_FILE"
    path = tmp_path / "sparse.onnx"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 5 * 2**30)
    assert code_of(source_of(path, BOUND), tmp_path) == "E_MODEL_FILE"
    assert code_of(source_of(tmp_path / "none.onnx", BOUND), tmp_path) == "E_MODEL_FILE"


def test_a_model_without_inputs_is_refused(tmp_path: Path) -> None:
    value = onnx.numpy_helper.from_array(drawn(2))
    path = one_node(tmp_path / "m.onnx", onnx.helper.make_node("Constant", [], ["out"], value=value), {})
    assert code_of(source_of(path), tmp_path) == "E_SOURCE_INPUTS"


def test_an_operator_that_nothing_knows_is_refused(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Theirs", ["x"], ["out"], domain="theirs")
    path = one_node(tmp_path / "m.onnx", node, {"x": (FLOAT, [2, 3])})
    assert code_of(source_of(path), tmp_path) == "E_MODEL_OPERATOR"


def test_a_model_in_sixteen_bits_is_raced_in_them(tmp_path: Path) -> None:
    model = onnx.load(masked_lookup(tmp_path / "m.onnx"))
    for tensor in list(model.graph.initializer):
        if tensor.name != "last":
            half = onnx.numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(onnx.numpy_helper.from_array(half, tensor.name))
    model.graph.node[1].attribute[0].i = FLOAT16
    model.graph.output[0].type.tensor_type.elem_type = FLOAT16
    onnx.save(model, tmp_path / "half.onnx")
    folder, bundle = opened(source_of(tmp_path / "half.onnx", BOUND), tmp_path)
    assert [notice.code for notice in bundle.notices] == ["W_FILE_PRECISION"]
    assert bundle.spec.outputs[0].dtype == "float16"
    held = safetensors.read(weights_file(folder))["table"]
    np.testing.assert_array_equal(held, weights()["table"].astype(np.float16))


def test_a_model_of_float64_is_refused(tmp_path: Path) -> None:
    node = onnx.helper.make_node("MatMul", ["x", "weight"], ["out"])
    path = one_node(tmp_path / "m.onnx", node, {"x": (DOUBLE, [2, 4])}, DOUBLE)
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(drawn(4, 3).astype(np.float64), "weight"))
    onnx.save(model, path)
    assert code_of(source_of(path), tmp_path) == "E_SOURCE"


def test_a_model_whose_inputs_change_nothing_has_a_weak_proof(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Shape", ["x"], ["out"])
    path = one_node(tmp_path / "m.onnx", node, {"x": (FLOAT, [2, 3])}, INT64)
    _, bundle = opened(source_of(path), tmp_path)
    assert [notice.code for notice in bundle.notices] == ["W_WEAK_PROOF"]
    assert not materials_of(source_of(path), tmp_path).tells_inputs_apart
    assert materials_of(source_of(masked_lookup(tmp_path / "n.onnx"), BOUND), tmp_path).tells_inputs_apart


def test_an_input_that_changes_nothing_is_named(tmp_path: Path) -> None:
    model = onnx.load(masked_lookup(tmp_path / "m.onnx"))
    model.graph.node[3].input[1] = "one"  # the mask is computed and not used
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 1, 1), np.float32), "one"))
    onnx.save(model, tmp_path / "ignoring.onnx")
    _, bundle = opened(source_of(tmp_path / "ignoring.onnx", BOUND), tmp_path)
    assert [notice.code for notice in bundle.notices] == ["W_INPUT_UNNOTICED"]
    assert "mask" in bundle.notices[0].text
    _, bundle = opened(source_of(tmp_path / "m.onnx", BOUND), tmp_path)
    assert bundle.notices == ()


@pytest.mark.parametrize(("kind", "dtype"), [(BOOL, "bool"), (FLOAT16, "float16"), (6, "int32"), (INT64, "int64")])
def test_inputs_of_other_types_are_drawn_in_their_own(tmp_path: Path, kind: int, dtype: str) -> None:
    node = onnx.helper.make_node("Cast", ["x"], ["out"], to=FLOAT)
    path = one_node(tmp_path / "m.onnx", node, {"x": (kind, [4, 16])})
    folder, bundle = opened(source_of(path), tmp_path)
    drawn_input = safetensors.read(inputs_file(folder, "inputs"))["x"]
    assert drawn_input.dtype == dtype
    assert bundle.spec.inputs[0].dtype == dtype
    np.testing.assert_array_equal(
        safetensors.read(reference_file(folder, "inputs"))["out"], drawn_input.astype(np.float64)
    )


def test_multiplications_are_counted_where_they_depend_on_an_input(tmp_path: Path) -> None:
    _, bundle = opened(source_of(masked_lookup(tmp_path / "m.onnx"), BOUND), tmp_path)
    assert bundle.spec.gmacs_per_item == pytest.approx(6 * (32 * 32 + 32 * 4) / 1e9)


def test_sizes_that_an_operator_does_not_take_are_refused_in_one_line(tmp_path: Path) -> None:
    """They show when it is computed where they are not known before, as in the branches of an If."""
    folder, _ = opened(source_of(masked_lookup(tmp_path / "m.onnx"), BOUND), tmp_path)
    graph, forward = imported_reference(folder / "model.onnx")
    ids, mask = np.zeros((2, 6), np.int64), np.ones((2, 5), np.int64)
    with pytest.raises(FairlapError) as refused:
        forward(graph.weights, {"ids": ids, "mask": mask})
    assert refused.value.code == "E_SHAPES"
    assert "\n" not in str(refused.value)
