"""Read an ONNX file that may be damaged or hostile: every size is checked before memory is taken."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import NotAvailable, described
from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.files.external_data import array_at, place_of
from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.subgraphs import graphs_in, graphs_under, names_read_by

MOST_BYTES = 2**31  # protobuf's own limit; larger models have external data
MOST_NODES = 1_000_000  # with the functions of the file expanded
_NO_NAME = re.compile(r"[^A-Za-z]+|unk__\d+")
_CONTAINERS = {  # TensorProto's typed fields hold one number per element, except these
    "COMPLEX64": 2,
    "COMPLEX128": 2,
}
_NARROW = ("UINT4", "INT4", "FLOAT4E2M1", "UINT2", "INT2")


def read_model(path: Path) -> Any:
    """Read the file as a ModelProto, without external data."""
    try:
        import onnx
    except ImportError as error:
        raise NotAvailable("reading ONNX files needs the package onnx: install fairlap[onnx]") from error
    try:
        if path.exists() and not path.is_file():
            what = "a folder, not a file" if path.is_dir() else "not a file"
            raise ModelFileInvalid(f"{path} is {what}")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise ModelFileInvalid(
                f"{path} has {size / 1e9:.1f} GB; an ONNX file may have 2.1 GB at most: save it with external data"
            )
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileInvalid(f"cannot read {path}: {error.strerror}") from error
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:
        raise ModelFileInvalid(f"{path} is not an ONNX model: {described(error)}") from error
    if not model.graph.node and not model.graph.output:
        raise ModelFileInvalid(f"{path} is not an ONNX model: its graph is empty")
    _check_names(model, path)
    _check_calls(model, path)
    _name_no_open_sizes(model.graph)
    _sort(model.graph, path)
    return model


def _name_no_open_sizes(graph: Any) -> None:
    """Clear ``?``, ``-1`` or ``unk__749``, which exporters write for sizes that they leave open: no name, no size."""
    for value in graph.input:
        for axis in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if _NO_NAME.fullmatch(axis.dim_param) or (axis.HasField("dim_value") and axis.dim_value < 0):
                axis.ClearField("value")


def _sort(graph: Any, path: Path) -> None:
    """Sort nodes so that what one uses is computed before it.

    The format requires that, and some converters forget it. Nodes that are in order stay where they are.
    """
    for node in graph.node:
        for inner in graphs_in(node):
            _sort(inner, path)
    makers = {name: number for number, node in enumerate(graph.node) for name in node.output if name}
    uses = [{makers[name] for name in names_read_by(node) if name in makers} for node in graph.node]
    if all(before < number for number, own in enumerate(uses) for before in own):
        return
    users: dict[int, list[int]] = {}
    for number, own in enumerate(uses):
        for before in own:
            users.setdefault(before, []).append(number)
    missing = [len(own) for own in uses]
    ready = [number for number, count in enumerate(missing) if not count]
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for number in users.get(order[-1], ()):
            missing[number] -= 1
            if not missing[number]:
                heapq.heappush(ready, number)
    if len(order) < len(missing):
        raise ModelFileInvalid(f"{path} is not valid: some of its nodes use their own results")
    nodes = [graph.node[number] for number in order]
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _check_calls(model: Any, path: Path) -> None:
    """Refuse functions of the file that call themselves, or that are too many nodes once they are expanded."""
    functions = {(each.domain, each.name): each.node for each in model.functions}
    expanded: dict[tuple[str, str], int | None] = {}

    def nodes_in(nodes: Iterable[Any]) -> int:
        return sum(
            (size_of((node.domain, node.op_type)) if (node.domain, node.op_type) in functions else 1)
            + sum(nodes_in(inner.node) for inner in graphs_in(node))
            for node in nodes
        )

    def size_of(key: tuple[str, str]) -> int:
        if key not in expanded:
            expanded[key] = None
            expanded[key] = nodes_in(functions[key])
        size = expanded[key]
        if size is None:
            raise ModelFileInvalid(f"{path} is not valid: its function {key[1]!r} calls itself")
        if size > MOST_NODES:
            raise ModelFileInvalid(f"{path} has functions that are over {MOST_NODES:,} nodes once they are expanded")
        return size

    try:
        found = nodes_in(model.graph.node) if functions else 0
    except RecursionError:
        raise ModelFileInvalid(f"{path} has functions that call each other too deeply") from None
    if found > MOST_NODES:
        raise ModelFileInvalid(f"{path} has over {MOST_NODES:,} nodes once its functions are expanded")


def _check_names(model: Any, path: Path) -> None:
    """Text that is not UTF-8 arrives as bytes."""
    graph = model.graph
    texts = [each.domain for each in model.opset_import]
    graphs = [each for outer in (graph, *model.functions) for each in graphs_under(outer)]
    for node in (node for each in graphs for node in each.node):
        texts += [node.op_type, node.domain, node.name, *node.input, *node.output]
        texts += [each.name for each in node.attribute]
    inner = [each for each in graphs if hasattr(each, "initializer")]  # functions have none
    for each in (value for own in inner for value in (*own.input, *own.output, *own.initializer)):
        texts.append(each.name)
    for each in graph.input:
        texts += [dim.dim_param for dim in each.type.tensor_type.shape.dim]
    for tensor in graph.initializer:
        texts += [text for entry in tensor.external_data for text in (entry.key, entry.value)]
    if not all(isinstance(text, str) for text in texts):
        raise ModelFileInvalid(f"{path} is damaged: it has a name that is not valid UTF-8")


def array_of(tensor: Any, folder: Path) -> Array:
    """Read a TensorProto as an array, also where its data is in another file of the model's folder."""
    from onnx import TensorProto, helper, numpy_helper

    kinds = TensorProto.DataType
    if tensor.data_type not in kinds.values() or tensor.data_type in (kinds.Value("UNDEFINED"), kinds.Value("STRING")):
        raise ModelFileInvalid(f"tensor {tensor.name!r} has no numeric type (data type {tensor.data_type})")
    kind = kinds.Name(tensor.data_type)
    shape = tuple(tensor.dims)
    if any(size < 0 for size in shape):
        raise ModelFileInvalid(f"tensor {tensor.name!r} has a negative size: {shape}")
    count = math.prod(shape)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if tensor.data_location == TensorProto.EXTERNAL:
        return array_at(place_of(tensor, folder, dtype, shape), dtype, shape)
    _check_length(tensor, kind, dtype, count)
    try:
        array: Array = numpy_helper.to_array(tensor)
    except Exception as error:
        raise ModelFileInvalid(f"cannot read tensor {tensor.name!r}: {described(error)}") from error
    return array


def _check_length(tensor: Any, kind: str, dtype: np.dtype[Any], count: int) -> None:
    if tensor.HasField("raw_data"):
        found = len(tensor.raw_data)
        wanted = (
            math.ceil(count * (0.25 if "2" in kind[-2:] and kind in _NARROW[3:] else 0.5))
            if kind in _NARROW
            else count * dtype.itemsize
        )
        unit = "bytes"
    else:
        found = max(
            len(field)
            for field in (
                tensor.float_data,
                tensor.int32_data,
                tensor.int64_data,
                tensor.double_data,
                tensor.uint64_data,
            )
        )
        wanted, unit = count * _CONTAINERS.get(kind, 1), "numbers"
        if kind in _NARROW:
            return
    if found != wanted:
        raise ModelFileInvalid(
            f"tensor {tensor.name!r} of shape {tuple(tensor.dims)} needs {wanted} {unit}, has {found}"
        )
