"""Smaller forms of an ONNX file: zeros where they belong, fewer bits, and answers near those of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import output, refusal
from fairlap.compression.forms import forms_in
from fairlap.compression.zeros import with_share_of_zeros, with_two_of_four
from fairlap.errors import InvalidRequest

onnx: Any = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")

BATCH, WIDTH, CLASSES = 8, 64, 10
RNG = np.random.default_rng(5)
IMAGES = RNG.normal(size=(BATCH, WIDTH)).astype(np.float32)
FORMS = "int8-dynamic,int8-static,fp8,int4,sparse-2:4,sparse-75%"
# Of the largest answer: what steps of 128, or of 16, may do to sums of 64 products.
LARGEST_ERROR = {"int8-dynamic": 0.04, "int8-static": 0.04, "fp8": 0.1, "int4": 0.2}


def by_hand(fours: list[float]) -> list[float]:
    """Keep the two largest."""
    kept = sorted(range(4), key=lambda place: -abs(fours[place]))[:2]
    return [value if place in kept else 0.0 for place, value in enumerate(fours)]


@pytest.mark.parametrize("axis", [0, 1])
def test_two_of_each_four_that_are_added_up_are_left(axis: int) -> None:
    weights = RNG.normal(size=(8, 12)).astype(np.float32)
    found = with_two_of_four(weights, axis)
    assert found is not None
    rows, expected = (np.moveaxis(each, axis, -1) for each in (found, weights))
    for row, own in zip(rows, expected, strict=True):
        for first in range(0, len(own), 4):
            assert row[first : first + 4].tolist() == by_hand(own[first : first + 4].tolist())
    assert with_two_of_four(weights[:6, :6], axis) is None


def test_the_smallest_share_becomes_zero() -> None:
    weights = RNG.normal(size=(10, 10)).astype(np.float32)
    found = with_share_of_zeros(weights, 0.3)
    assert (found == 0).sum() == 30
    assert np.abs(weights[found == 0]).max() < np.abs(weights[found != 0]).min()
    assert np.array_equal(found[found != 0], weights[found != 0])


def network(path: Path) -> Path:
    """Write a linear layer as Gemm with its weights transposed, and one as MatMul."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    arrays = {
        "first": (RNG.normal(size=(WIDTH, WIDTH)) / 8).astype(np.float32),
        "bias": RNG.normal(size=WIDTH).astype(np.float32),
        "second": (RNG.normal(size=(WIDTH, CLASSES)) / 8).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["image", "first", "bias"], ["hidden"], transB=1),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("MatMul", ["positive", "second"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [BATCH, WIDTH])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [BATCH, CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def session(path: Path, optimized: Path | None = None) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def answers(path: Path) -> np.ndarray:
    found: np.ndarray = session(path).run(None, {"image": IMAGES})[0]
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("model")
    file = network(folder / "net.onnx")
    np.save(folder / "images.npy", IMAGES)
    found = output(
        "compress", file, "--to", FORMS, "--inputs", folder / "images.npy", "--into", folder / "small", "--json"
    )
    return file, folder / "small", {each["form"]: each for each in json.loads(found)["forms"]}


def test_each_form_is_a_model_with_answers_near_those_of_the_file(
    written: tuple[Path, Path, dict[str, Any]],
) -> None:
    file, folder, forms = written
    assert list(forms) == FORMS.split(",")
    exact = answers(file)
    for name, largest in LARGEST_ERROR.items():
        off = np.abs(answers(folder / forms[name]["file"]) - exact).max() / np.abs(exact).max()
        assert 0 < off < largest
        assert forms[name]["bytes"] == (folder / forms[name]["file"]).stat().st_size < file.stat().st_size
    assert forms["int4"]["changed"] == 1  # ONNX Runtime's quantizer takes MatMul alone
    assert forms["int4"]["unchanged"] == 1
    assert forms["int8-dynamic"]["changed"] == forms["int8-static"]["changed"] == 2
    assert forms["fp8"]["changed"] == 2
    assert forms["fp8"]["unchanged"] == 0


def test_sums_of_int8_do_not_saturate(written: tuple[Path, Path, dict[str, Any]]) -> None:
    """The reference evaluator of onnx adds up whole numbers; on processors without VNNI eight bits would overflow."""
    reference = pytest.importorskip("onnx.reference")
    _, folder, forms = written
    file = folder / forms["int8-dynamic"]["file"]
    exact = reference.ReferenceEvaluator(str(file)).run(None, {"image": IMAGES})[0]
    assert answers(file) == pytest.approx(exact, abs=1e-5)


def test_fp8_is_executed_as_the_reference_evaluator_executes_it(written: tuple[Path, Path, dict[str, Any]]) -> None:
    """With a Relu in front of a quantizer, and every optimisation of ONNX Runtime."""
    reference = pytest.importorskip("onnx.reference")
    file, folder, forms = written
    made = folder / forms["fp8"]["file"]
    exact = reference.ReferenceEvaluator(str(made)).run(None, {"image": IMAGES})[0]
    assert answers(made) == pytest.approx(exact, abs=1e-4)
    kinds = [each.data_type for each in onnx.load(made).graph.initializer]
    assert kinds.count(onnx.TensorProto.FLOAT8E4M3FN) == 2
    assert forms["fp8"]["bytes"] < 0.4 * file.stat().st_size


def test_sparse_forms_have_their_zeros_and_are_as_large(written: tuple[Path, Path, dict[str, Any]]) -> None:
    file, folder, forms = written
    model = onnx.load(folder / forms["sparse-2:4"]["file"])
    first, second = (
        onnx.numpy_helper.to_array(each) for each in model.graph.initializer if each.name in ("first", "second")
    )
    assert ((first.reshape(-1, 4) != 0).sum(axis=1) == 2).all()  # along the last axis, which Gemm adds up transposed
    assert ((second.T.reshape(-1, 4) != 0).sum(axis=1) == 2).all()
    weights = first.size + second.size
    assert forms["sparse-75%"]["zero_weights"] == pytest.approx(0.75 * weights / (weights + WIDTH), abs=1e-3)
    assert forms["sparse-75%"]["bytes"] == pytest.approx(file.stat().st_size, rel=0.01)


def test_onnx_runtime_runs_the_same_operators_on_zeros(written: tuple[Path, Path, dict[str, Any]]) -> None:
    """No kernel skips zeros: the optimized file has neither other operators nor sparse weights."""
    file, folder, forms = written
    kinds = []
    for number, each in enumerate((file, *(folder / forms[name]["file"] for name in ("sparse-2:4", "sparse-75%")))):
        session(each, folder / f"optimized-{number}.onnx")
        model = onnx.load(folder / f"optimized-{number}.onnx")
        assert not model.graph.sparse_initializer
        kinds.append([node.op_type for node in model.graph.node])
    assert kinds[0] == kinds[1] == kinds[2]


def test_what_cannot_be_compressed_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    file = network(tmp_path / "net.onnx")
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    helper = onnx.helper
    plain = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "plain",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4])],
    )
    onnx.save(helper.make_model(plain, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "r.onnx")
    into = tmp_path / "small"
    for arguments in (
        (file, "--to", "int3"),
        (file, "--to", "int4,int4"),
        (file, "--to", "sparse-100%"),
        (file, "--to", "int8-static"),  # without inputs
        (file, "--to", "fp8"),
        (file, "--to", "int4", "--inputs", file),
        (tmp_path / "notes.txt", "--to", "int4"),
        (tmp_path / "none.onnx", "--to", "int4"),
        (tmp_path / "r.onnx", "--to", "sparse-50%"),  # no weights
    ):
        assert refusal("compress", *arguments, "--into", into).code == "E_COMPRESSION"
    assert refusal("compress", tmp_path / "bad.onnx", "--to", "sparse-50%", "--into", into).code
    assert not into.exists()
    into.mkdir()
    assert refusal("compress", file, "--to", "sparse-50%", "--into", into).code == "E_COMPRESSION"


def test_forms_are_named_with_their_share() -> None:
    [two_of_four, most] = forms_in("sparse-2:4,sparse-90%")
    assert (two_of_four.zeros, most.zeros, most.file_suffix, two_of_four.file_suffix) == (
        0.5,
        0.9,
        "sparse-90",
        "sparse-2of4",
    )


@pytest.mark.slow_but("fp8-inputs0")
@pytest.mark.parametrize(
    "inputs",
    [
        IMAGES[:0],
        IMAGES.astype(np.int64),
        np.where(np.arange(WIDTH) == 3, np.nan, IMAGES).astype(np.float32),
        np.pad(IMAGES, ((0, 0), (0, 1))),
    ],
)
@pytest.mark.parametrize("form", ["int8-static", "fp8"])
def test_inputs_that_give_no_ranges_are_named(tmp_path: Path, inputs: np.ndarray, form: str) -> None:
    file = network(tmp_path / "net.onnx")
    np.save(tmp_path / "spoilt.npy", inputs)
    refused = refusal("compress", file, "--to", form, "--inputs", tmp_path / "spoilt.npy", "--into", tmp_path / "small")
    assert refused.code == "E_COMPRESSION"
    assert "spoilt.npy" in str(refused)
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize(("form", "zeros"), [("sparse-99.5%", 0.995), ("sparse-5%", 0.05)])
def test_any_share_of_zeros_may_be_asked_for(form: str, zeros: float) -> None:
    assert forms_in(form)[0].zeros == pytest.approx(zeros)


@pytest.mark.parametrize("form", ["sparse-0%", "sparse-100%", "sparse-nan%"])
def test_a_share_of_nothing_or_all_is_refused(form: str) -> None:
    with pytest.raises(InvalidRequest):
        forms_in(form)
