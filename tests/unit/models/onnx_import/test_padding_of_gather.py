"""A lookup that carries fairlap's mark of a padding row: same values, and no mark that is not a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")

from fairlap.models.onnx_import.build import LibraryName, build  # noqa: E402
from fairlap.models.onnx_import.errors import ModelFileInvalid, OperatorsUnsupported  # noqa: E402
from fairlap.models.onnx_import.files.load import load_graph  # noqa: E402
from fairlap.models.onnx_import.nodes import PADDING_KEY  # noqa: E402

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
IDS = np.array([[0, 2], [3, 0]])


def saved(folder: Path, mark: str, ids: np.ndarray | None = None, axis: int = 0) -> Path:
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node("Gather", ["table", "ids"], ["rows"], axis=axis)
    node.metadata_props.add(key=PADDING_KEY, value=mark)
    shape = IDS.shape if ids is None else ids.shape
    held = [numpy_helper.from_array(TABLE, "table")]
    given = [] if ids is not None else [helper.make_tensor_value_info("ids", TensorProto.INT64, shape)]
    held += [] if ids is None else [numpy_helper.from_array(ids, "ids")]
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, (*shape, 3) if not axis else (4, *shape))
    graph = helper.make_graph([node], "lookup", given, [rows], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("ids", [None, np.array(2), np.array(1)])
def test_rows_are_those_of_the_table(library: LibraryName, ids: Any, tmp_path: Path) -> None:
    if library != "numpy":
        pytest.importorskip(library, reason="`make test` installs it and runs this")
    model = build(load_graph(saved(tmp_path, "2", ids)), library)
    inputs = {"ids": model.library.constant(IDS)} if ids is None else {}
    found = model(model.prepare({"table": TABLE}), inputs)["rows"]
    np.testing.assert_array_equal(np.asarray(found), TABLE[IDS if ids is None else ids])


@pytest.mark.parametrize("mark", ["", "none", "2.5"])
def test_a_mark_that_is_no_number_is_refused(mark: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileInvalid):
        load_graph(saved(tmp_path, mark))


def test_a_mark_on_another_axis_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorsUnsupported):
        load_graph(saved(tmp_path, "2", axis=1))
