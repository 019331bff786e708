"""Which size of a file's inputs is the batch: of sequences that a recurrence takes step by step it is the second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.sources.contract import SourceError
from fairlap.request.fields.source import Source
from onnx_files import code_of, drawn, opened, source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")

STEPS, BATCH, FEATURES, HIDDEN = 16, 8, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(
    path: Path,
    *,
    kind: str = "LSTM",
    sizes: tuple[Any, ...],
    layout: int = 0,
    before: tuple[Any, ...] = (),
    **more: Any,
) -> Path:
    """``before`` are nodes from ``x`` to ``sequence``; without them the recurrence reads ``x``. ``more`` are inputs."""
    from onnx import TensorProto, helper, numpy_helper

    gates = GATES[kind]
    weights = {"W": drawn(1, gates * HIDDEN, FEATURES), "R": drawn(1, gates * HIDDEN, HIDDEN)}
    states = ["", "", *more] if more else []
    sequence = "sequence" if before else "x"
    node = helper.make_node(kind, [sequence, "W", "R", *states], ["y"], hidden_size=HIDDEN, layout=layout)
    graph = helper.make_graph(
        [*before, node],
        "recurrent",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, each) for name, each in {"x": sizes, **more}.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save_model(model, path)
    return path


def turned(*order: int) -> tuple[Any, ...]:
    return (onnx.helper.make_node("Transpose", ["x"], ["sequence"], perm=order),)


@pytest.mark.parametrize("kind", GATES)
def test_the_batch_of_a_recurrence_is_the_second_size_of_its_sequence(tmp_path: Path, kind: str) -> None:
    path = recurrent(tmp_path / "m.onnx", kind=kind, sizes=(STEPS, BATCH, FEATURES))
    _, bundle = opened(source_of(path), tmp_path)
    assert (bundle.batch, bundle.spec.default_batch) == (BATCH, BATCH)
    # By hand: each of the steps of each sequence multiplies both matrices.
    by_hand = STEPS * (FEATURES + HIDDEN) * GATES[kind] * HIDDEN
    assert bundle.spec.gmacs_per_item == pytest.approx(by_hand / 1e9)


def test_a_sequence_that_is_turned_first_has_its_batch_first(tmp_path: Path) -> None:
    path = recurrent(tmp_path / "m.onnx", sizes=(BATCH, STEPS, FEATURES), before=turned(1, 0, 2))
    assert opened(source_of(path), tmp_path)[1].batch == BATCH
    path = recurrent(tmp_path / "last.onnx", sizes=(FEATURES, STEPS, BATCH), before=turned(1, 2, 0))
    assert opened(source_of(path), tmp_path)[1].batch == BATCH


def test_states_have_the_same_batch_as_the_sequence(tmp_path: Path) -> None:
    path = recurrent(tmp_path / "m.onnx", sizes=(STEPS, BATCH, FEATURES), h=(1, BATCH, HIDDEN), c=(1, BATCH, HIDDEN))
    assert opened(source_of(path), tmp_path)[1].batch == BATCH


def test_a_batch_that_is_asked_for_is_bound_where_the_recurrence_has_it(tmp_path: Path) -> None:
    path = recurrent(tmp_path / "m.onnx", sizes=(STEPS, None, FEATURES))
    _, bundle = opened(source_of(path, batch=BATCH), tmp_path)
    assert [tensor.shape for tensor in bundle.spec.inputs] == [(STEPS, BATCH, FEATURES)]
    assert bundle.batch == BATCH
    fixed = recurrent(tmp_path / "fixed.onnx", sizes=(STEPS, BATCH, FEATURES))
    assert opened(source_of(fixed, batch=BATCH), tmp_path)[1].batch == BATCH
    assert code_of(source_of(fixed, batch=STEPS), tmp_path) == "E_SHAPES"


def test_a_size_that_is_named_so_is_the_batch(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    node = helper.make_node("Relu", ["x"], ["y"])
    sizes = ["length", "batch_size", 4]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "named", values[:1], values[1:]))
    model.ir_version = 9
    onnx.save_model(model, tmp_path / "m.onnx")
    source = source_of(tmp_path / "m.onnx", f"length={STEPS},batch_size={BATCH}")
    assert opened(source, tmp_path)[1].batch == BATCH


def test_data_for_a_metric_cannot_be_cut_where_the_batch_is_not_first(tmp_path: Path) -> None:
    path = recurrent(tmp_path / "m.onnx", sizes=(STEPS, BATCH, FEATURES))
    np.savez(tmp_path / "data.npz", x=drawn(STEPS, BATCH, FEATURES))
    np.save(tmp_path / "labels.npy", np.zeros(STEPS, np.int64))
    source = source_of(
        path, inputs=str(tmp_path / "data.npz"), labels=str(tmp_path / "labels.npy"), metrics=("accuracy",)
    )
    assert code_of(source, tmp_path) == "E_SOURCE_INPUTS"


@pytest.mark.slow
def test_the_batch_of_a_module_with_a_recurrence_is_its_second_size(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    module = f"recurrent_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, first):\n"
        "        super().__init__()\n"
        f"        self.steps = torch.nn.LSTM({FEATURES}, {HIDDEN}, batch_first=first)\n"
        "    def forward(self, x):\n"
        "        return self.steps(x)[0]\n"
        f"def steps_first():\n    return Net(False), (torch.randn({STEPS}, {BATCH}, {FEATURES}),)\n"
        f"def batch_first():\n    return Net(True), (torch.randn({BATCH}, {STEPS}, {FEATURES}),)\n"
    )
    for name in ("steps_first", "batch_first"):
        source = Source(f"{module}:{name}", f"{module}:{name}", str(tmp_path))
        assert opened(source, tmp_path)[1].batch == BATCH, name


def test_a_scalar_beside_the_batch_does_not_decide_it(tmp_path: Path) -> None:
    path = tmp_path / "scaled.onnx"
    save_nodes(path, [onnx.helper.make_node("Mul", ["x", "scale"], ["y"])], {"x": ("batch", 16), "scale": ()})
    _, bundle = opened(source_of(path, dims=f"batch={BATCH}"), tmp_path)
    assert bundle.batch == BATCH


def test_an_output_whose_size_depends_on_the_values_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "places.onnx"
    nodes = [onnx.helper.make_node("Relu", ["x"], ["positive"]), onnx.helper.make_node("NonZero", ["positive"], ["y"])]
    save_nodes(path, nodes, {"x": ("batch", 16)}, onnx.TensorProto.INT64)
    with pytest.raises(SourceError, match="size of y") as refused:
        opened(source_of(path, dims=f"batch={BATCH}"), tmp_path)
    assert refused.value.code == "E_SOURCE"


def save_nodes(path: Path, nodes: list[Any], inputs: Mapping[str, tuple[Any, ...]], output: int | None = None) -> None:
    """Save nodes from these inputs, of floats, to ``y``."""
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    given = [helper.make_tensor_value_info(name, floats, sizes) for name, sizes in inputs.items()]
    found = helper.make_tensor_value_info("y", floats if output is None else output, None)
    graph = helper.make_graph(nodes, "small", given, [found])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save_model(model, path)
