"""Read nodes of an ONNX graph, and refuse those that the importer lacks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.models.onnx_import.errors import ModelFileInvalid, OperatorsUnsupported
from fairlap.models.onnx_import.evaluation import check_attributes
from fairlap.models.onnx_import.files.model_file import array_of
from fairlap.models.onnx_import.graph import PADDING, Array, Node
from fairlap.models.onnx_import.operators.table import CONTROL_FLOW, OPERATORS, claimed
from fairlap.models.onnx_import.subgraphs import names_read_by

OLDEST_OPSET = 7
PADDING_KEY = "fairlap.padding"  # among the metadata of a node


def needed_nodes(graph: Any) -> list[Any]:
    """Those that outputs depend on, in the file's order."""
    wanted = {each.name for each in graph.output}
    if not wanted:
        raise ModelFileInvalid("the model has no outputs")
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(names_read_by(node))
    computed = [name for node in graph.node for name in node.output if name]
    computed += [each.name for each in graph.initializer]
    if len(computed) != len(set(computed)):
        raise ModelFileInvalid("two nodes or initializers of the model have the same output")
    return kept[::-1]


def refuse_unknown_operators(nodes: Iterable[Any], opset: int) -> None:
    """All in one message; those inside of bodies are refused when the bodies are followed."""
    accepted = {*claimed(), "Constant"}
    reasons: dict[str, str] = {}
    for node in nodes:
        domain = node.domain if node.domain != "ai.onnx" else ""
        name = f"{domain}.{node.op_type}" if domain else node.op_type
        if domain or node.op_type not in accepted:
            reasons[name] = f"{name} (control flow)" if node.op_type in CONTROL_FLOW else name
    if reasons:
        raise OperatorsUnsupported(f"operators that the importer lacks: {', '.join(sorted(reasons.values()))}")
    if opset < OLDEST_OPSET and _changed(nodes, opset):
        raise OperatorsUnsupported(
            f"the model uses opset {opset}; the importer reads {OLDEST_OPSET} and newer: convert it with"
            " onnx.version_converter"
        )


def _changed(nodes: Iterable[Any], opset: int) -> bool:
    """Whether operators meant something else than today."""
    from onnx import defs

    return any(
        defs.get_schema(node.op_type, opset, "").since_version
        != defs.get_schema(node.op_type, OLDEST_OPSET, "").since_version
        for node in nodes
        if defs.has(node.op_type, "")
    )


def node_of(proto: Any, folder: Path) -> Node:
    """Without the graphs inside of it, if it is control flow."""
    follows = proto.op_type in CONTROL_FLOW
    node = Node(
        operator=proto.op_type,
        inputs=tuple(proto.input),
        outputs=tuple(proto.output),
        attributes={
            each.name: _attribute(proto, each, folder)
            for each in proto.attribute
            if not (follows and each.HasField("g"))
        }
        | _padding(proto),
        name=proto.name,
    )
    if proto.op_type != "Constant" and not follows:
        check_attributes(OPERATORS["Cast" if proto.op_type == "CastLike" else proto.op_type], node)
    return node


def _padding(node: Any) -> dict[str, int]:
    """Read what ONNX has no attribute for, and fairlap's export of a PyTorch module writes."""
    found = next((each.value for each in node.metadata_props if each.key == PADDING_KEY), None)
    if found is None or node.op_type != "Gather":
        return {}
    try:
        return {PADDING: int(found)}
    except ValueError as error:
        raise ModelFileInvalid(f"{PADDING_KEY} of {node.name!r} must be the number of a row (got {found!r})") from error


def _attribute(node: Any, attribute: Any, folder: Path) -> Any:
    from onnx import AttributeProto, TensorProto, helper

    kinds = AttributeProto
    if attribute.type == kinds.TENSOR:
        return array_of(attribute.t, folder)
    try:
        value = helper.get_attribute_value(attribute)
        if attribute.name in ("to", "dtype") and attribute.type == kinds.INT:
            if value == TensorProto.STRING:
                raise OperatorsUnsupported(f"{node.op_type} {node.name!r} makes strings")
            return str(np.dtype(helper.tensor_dtype_to_np_dtype(value)))
        if attribute.type == kinds.STRING:
            return value.decode()
        if attribute.type == kinds.STRINGS:
            return tuple(each.decode() for each in value)
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise ModelFileInvalid(f"attribute {attribute.name!r} of {node.op_type} is not valid") from error
    if attribute.type in (kinds.INT, kinds.FLOAT):
        return value
    if attribute.type in (kinds.INTS, kinds.FLOATS):
        return tuple(value)
    raise OperatorsUnsupported(f"{node.op_type} {node.name!r} has an attribute {attribute.name!r} of an unknown kind")


def constant_of(proto: Any, folder: Path) -> Array:
    """Read the value of a Constant."""
    node = node_of(proto, folder)
    (kind, value), *more = node.attributes.items() or (("", None),)
    dtypes = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if more or (kind != "value" and kind not in dtypes):
        raise OperatorsUnsupported(f"Constant {node.name!r} of the kind {kind or 'none'}")
    return np.asarray(value) if kind == "value" else np.asarray(value, dtypes[kind])
