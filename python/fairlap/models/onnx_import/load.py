"""Load an ONNX file: checked, dimensions bound, shapes and indices computed, weights by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from fairlap.errors import described
from fairlap.models.onnx_import.branches import take_known_branches
from fairlap.models.onnx_import.contrib.expansion import expand_contrib
from fairlap.models.onnx_import.dimensions import bound_inputs
from fairlap.models.onnx_import.errors import DimensionsUnbound, ModelFileInvalid, OperatorsUnsupported
from fairlap.models.onnx_import.evaluation import attributes_of, check_attributes
from fairlap.models.onnx_import.folding import Folded, Folding
from fairlap.models.onnx_import.graph import Array, Graph, Node, Tensor
from fairlap.models.onnx_import.libraries.numpy_library import is_floating
from fairlap.models.onnx_import.model_file import array_of, read_model
from fairlap.models.onnx_import.operators.table import CONTROL_FLOW, OPERATORS, claimed
from fairlap.models.onnx_import.subgraphs import graphs_under

OLDEST_OPSET = 7
MOST_KNOWN = 2**16  # elements of an array that takes part in computing shapes
MOST_CHECKED = 2**23  # elements in which infinities are looked for: a mask of 2,896 tokens
DTYPES = frozenset(
    (
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    )
)


def load_graph(
    path: str | Path,
    *,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Graph:
    """Read a model.

    Args:
        path: The ONNX file. External data must be in its folder.
        dimensions: Sizes of named dimensions: ``{"batch": 8}``.
        shapes: Whole shapes of inputs, by the input's name.

    Raises:
        ModelFileInvalid: the file is damaged or not a model.
        DimensionsUnbound: inputs have dimensions without a size.
        OperatorsUnsupported: the model uses operators that the importer lacks; the message names all of them.
    """
    path = Path(path)
    model = _prepared(read_model(path), path)
    return _loaded(model, path.resolve().parent, dimensions or {}, shapes or {})


def _prepared(model: Any, path: Path) -> Any:
    """Convert the model to a supported opset, and expand its functions."""
    import onnx
    from onnx import inliner

    domains = {each.domain: each.version for each in model.opset_import}
    if "" not in domains and "ai.onnx" in domains:
        domains[""] = domains["ai.onnx"]
    if not 1 <= domains.get("", 0) <= onnx.defs.onnx_opset_version():
        raise ModelFileInvalid(
            f"{path} uses opset {domains.get('', 0)}; the installed onnx knows 1 to {onnx.defs.onnx_opset_version()}"
        )
    if model.functions:
        try:
            model = inliner.inline_local_functions(model)
        except Exception as error:
            raise ModelFileInvalid(f"cannot expand the functions of {path}: {described(error)}") from error
    try:
        for graph in graphs_under(model.graph):
            expand_contrib(graph)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileInvalid(f"{path} has operators that are not valid: {described(error)}") from error
    return model


def _loaded(model: Any, folder: Path, dimensions: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    graph = model.graph

    def known_value(name: str) -> Array | None:
        wanted = SimpleNamespace(
            node=graph.node,
            initializer=graph.initializer,
            sparse_initializer=graph.sparse_initializer,
            input=graph.input,
            output=[SimpleNamespace(name=name)],
        )
        try:
            return _folded(wanted, model, folder, dimensions, shapes)[1].known.get(name)
        except (OperatorsUnsupported, DimensionsUnbound):
            return None

    take_known_branches(graph, known_value)
    inputs, folded, arrays, opset = _folded(graph, model, folder, dimensions, shapes)
    return _assembled(graph, inputs, folded, arrays, opset)


def _folded(
    graph: Any, model: Any, folder: Path, dimensions: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[Tensor, ...], Folded, dict[str, Array], int]:
    """Bind the inputs, and compute what the graph's outputs depend on and is known."""
    opset = max(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    needed = _needed_nodes(graph)
    _refuse_unknown_operators(needed, opset)
    if graph.sparse_initializer:
        raise OperatorsUnsupported("sparse initializers are not supported")
    nodes = [(proto, _node(proto, folder)) for proto in needed]
    names = {each.name for each in graph.initializer}
    inputs = bound_inputs([each for each in graph.input if each.name not in names], dimensions, shapes)
    arrays = _arrays(graph, nodes, folder)
    nodes = [(proto, node) for proto, node in nodes if node.operator != "Constant"]
    folding = Folding({"": opset}, min(model.ir_version, 13))
    for tensor in inputs:
        folding.enter(tensor)
    for name, array in arrays.items():
        tensor = Tensor(name, str(array.dtype), array.shape)
        folding.enter(tensor, array if array.size <= MOST_KNOWN else None)
    folded = folding.fold(nodes)
    _refuse_types(folded)
    return inputs, folded, arrays, opset


def _needed_nodes(graph: Any) -> list[Any]:
    """Those that outputs depend on, in the file's order."""
    wanted = {each.name for each in graph.output}
    if not wanted:
        raise ModelFileInvalid("the model has no outputs")
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
    computed = [name for node in graph.node for name in node.output if name]
    computed += [each.name for each in graph.initializer]
    if len(computed) != len(set(computed)):
        raise ModelFileInvalid("two nodes or initializers of the model have the same output")
    return kept[::-1]


def _refuse_unknown_operators(nodes: Iterable[Any], opset: int) -> None:
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


def _node(proto: Any, folder: Path) -> Node:
    node = Node(
        operator=proto.op_type,
        inputs=tuple(proto.input),
        outputs=tuple(proto.output),
        attributes={each.name: _attribute(proto, each, folder) for each in proto.attribute},
        name=proto.name,
    )
    if proto.op_type != "Constant":
        check_attributes(OPERATORS["Cast" if proto.op_type == "CastLike" else proto.op_type], node)
    return node


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


def _arrays(graph: Any, nodes: Iterable[tuple[Any, Node]], folder: Path) -> dict[str, Array]:
    """Read the initializers and the results of Constant nodes that the outputs depend on."""
    used = {name for _, node in nodes for name in node.inputs} | {each.name for each in graph.output}
    arrays = {each.name: array_of(each, folder) for each in graph.initializer if each.name in used}
    for _, node in nodes:
        if node.operator == "Constant":
            arrays[node.outputs[0]] = _constant(node)
    return arrays


def _constant(node: Node) -> Array:
    (kind, value), *more = node.attributes.items() or (("", None),)
    dtypes = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if more or (kind != "value" and kind not in dtypes):
        raise OperatorsUnsupported(f"Constant {node.name!r} of the kind {kind or 'none'}")
    return np.asarray(value) if kind == "value" else np.asarray(value, dtypes[kind])


def _refuse_types(folded: Folded) -> None:
    unknown = {f"{tensor.dtype} ({name})" for name, tensor in folded.values.items() if tensor.dtype not in DTYPES}
    if unknown:
        raise OperatorsUnsupported(f"types that the importer lacks: {', '.join(sorted(unknown)[:10])}")


def _assembled(
    graph: Any, inputs: tuple[Tensor, ...], folded: Folded, arrays: Mapping[str, Array], opset: int
) -> Graph:
    outputs = []
    for each in graph.output:
        if each.name not in folded.values:
            raise ModelFileInvalid(f"nothing computes the output {each.name!r}")
        outputs.append(folded.values[each.name])
    for node in folded.nodes:  # refuses what cannot be built
        attributes_of(node, folded.known, folded.values, opset)
    used = {name for node in folded.nodes for name in node.inputs if name} | {each.name for each in outputs}
    operands = _operands(folded.nodes)
    weights: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    for name in sorted(used - {tensor.name for tensor in inputs}):
        if name in arrays:
            kept = weights if name not in operands and _is_weight(arrays[name]) else constants
            kept[name] = arrays[name]
        elif name in folded.known and name not in folded.computed:
            constants[name] = folded.known[name]
    return Graph(inputs, tuple(outputs), tuple(folded.nodes), weights, constants, folded.values, opset)


def _operands(nodes: Iterable[Node]) -> set[str]:
    """Find what must be known when building, or is not a weight."""
    found = set()
    for node in nodes:
        for place in OPERATORS[node.operator].operands.values():
            if place < len(node.inputs):
                found.add(node.inputs[place])
        if node.operator == "Pow":  # with another exponent it would be another model
            found.add(node.inputs[1])
    return found


def _is_weight(array: Array) -> bool:
    """Learned numbers are floating-point or quantized to eight bits, and finite; a mask is not."""
    if array.ndim == 0:
        return False
    if array.dtype in (np.int8, np.uint8):
        return True
    if not is_floating(array.dtype):
        return False
    return array.size > MOST_CHECKED or bool(np.isfinite(array.astype(np.float32)).all())
