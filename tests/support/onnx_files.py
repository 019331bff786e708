"""Small ONNX files as users bring them, and their opened bundles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources.bundle import bundle_in
from fairlap.models.sources.contract import Bundle
from fairlap.models.sources.opening import Order, opened_folder
from fairlap.race.equal_work.material_sources import seeds_of_inputs
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.source import Source, dims_in
from fairlap.request.work import Precision, Work

ROWS, WIDTH, CLASSES = 50, 32, 4
BOUND = "batch=2,sequence=6"


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * 0.4).astype(np.float32)


def weights() -> dict[str, np.ndarray]:
    return {
        "table": drawn(ROWS, WIDTH),
        "hidden.weight": drawn(WIDTH, WIDTH),
        "hidden.bias": drawn(WIDTH),
        "out.weight": drawn(WIDTH, CLASSES),
    }


def masked_lookup(path: Path, **changes: Any) -> Path:
    """Ids and a mask of int64 with two symbols, a lookup, two matrix products. Changes replace weights by name."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["looked up"]),
        helper.make_node("Cast", ["mask"], ["mask in float"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask in float", "last"], ["mask of rows"]),
        helper.make_node("Mul", ["looked up", "mask of rows"], ["masked"]),
        helper.make_node("MatMul", ["masked", "hidden.weight"], ["product"]),
        helper.make_node("Add", ["product", "hidden.bias"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "out.weight"], ["logits"]),
    ]
    sizes = ["batch", "sequence"]
    graph = helper.make_graph(
        nodes,
        "masked lookup",
        [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in ("ids", "mask")],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [*sizes, CLASSES])],
        [
            *(numpy_helper.from_array(array, name) for name, array in {**weights(), **changes}.items()),
            numpy_helper.from_array(np.array([-1]), "last"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save_model(model, path)
    return path


def answers_by_hand(weights: Mapping[str, np.ndarray], ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    masked = weights["table"][ids] * mask[..., None]
    hidden = np.tanh(masked @ weights["hidden.weight"] + weights["hidden.bias"])
    logits: np.ndarray = hidden @ weights["out.weight"]
    return logits


def one_node(path: Path, node: Any, inputs: Mapping[str, tuple[int, list[Any]]], output_type: int = 1) -> Path:
    """Write a graph of one node, whose inputs have an ONNX type and a shape."""
    import onnx
    from onnx import helper

    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(node.output[0], output_type, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("theirs", 1)])
    model.ir_version = 9
    onnx.save_model(model, path)
    return path


def source_of(path: Path | str, dims: str = "", **bindings: Any) -> Source:
    return Source(Path(path).name, str(path), str(Path.cwd()), dims=dims_in(dims), **bindings)


def opened(source: Source, scratch: Path, *, fp8: bool = False) -> tuple[Path, Bundle]:
    """In this process, which is quicker than in a separate one."""
    folder = opened_folder(Order(source, seeds_of_inputs(0), str(scratch), fp8))
    return folder, bundle_in(folder)


def materials_of(source: Source, scratch: Path, precision: Precision = "fp32") -> Materials:
    folder, bundle = opened(source, scratch, fp8=precision == "fp8")
    work = Work(source.name, bundle.batch, precision=precision, source=source)
    allowed = bundle.tolerances.get(precision, {})
    return Materials(work, bundle.spec, str(folder), folder, bundle.notices, allowed)


def code_of(source: Source, scratch: Path) -> str:
    """With which code, and in one line, a source is refused."""
    with pytest.raises(FairlapError) as refused:
        opened(source, scratch)
    assert "\n" not in str(refused.value)
    return refused.value.code
