"""A model that takes the machine's memory when it is opened is given up in one line."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from fairlap.launch import opened_source
from fairlap.models.sources.contract import SourceError
from onnx_files import source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


def test_a_small_file_whose_shapes_double_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inference of shapes computes what a shape is made of, and each node here doubles it."""
    from onnx import TensorProto, helper

    names = ["s", *(f"t{level}" for level in range(39))]
    nodes = [helper.make_node("Concat", 2 * [name], [after], axis=0) for name, after in pairwise(names)]
    nodes += [helper.make_node("Slice", [names[-1], "zero", "one"], ["shape"]),
              helper.make_node("Reshape", ["x", "shape"], ["y"])]  # fmt: skip
    known = [helper.make_tensor(name, TensorProto.INT64, [1], [value]) for name, value in
             (("s", 4), ("zero", 0), ("one", 1))]  # fmt: skip
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "concat.onnx").write_bytes(model.SerializeToString())
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opened_source, "available_memory_bytes", lambda: 2 * 2**30)
    with pytest.raises(SourceError) as given_up:
        opened_source.opened(source_of(tmp_path / "concat.onnx"), {"first": 1})
    assert given_up.value.code == "E_SOURCE_SIZE"
