"""Load an ONNX file: checked, dimensions bound, shapes and indices computed, weights by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fairlap.errors import described
from fairlap.models.onnx_import.assembly import refuse_types, weights_and_constants
from fairlap.models.onnx_import.contrib.expansion import expand_contrib
from fairlap.models.onnx_import.control_flow.bodies import Scope
from fairlap.models.onnx_import.control_flow.branches import take_known_branches
from fairlap.models.onnx_import.dimensions import bound_inputs
from fairlap.models.onnx_import.errors import DimensionsUnbound, ModelFileInvalid, OperatorsUnsupported
from fairlap.models.onnx_import.evaluation import attributes_of
from fairlap.models.onnx_import.files.model_file import read_model
from fairlap.models.onnx_import.folding import Folding
from fairlap.models.onnx_import.graph import Array, Folded, Graph, Tensor
from fairlap.models.onnx_import.nodes import needed_nodes, refuse_unknown_operators
from fairlap.models.onnx_import.subgraphs import graphs_under


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


def graph_of_model(model: Any) -> Graph:
    """Take a model that was built in this process, whose sizes are all known."""
    return _loaded(_prepared(model, Path(model.graph.name)), Path(), {}, {})


def _prepared(model: Any, path: Path) -> Any:
    """Convert the model to a supported opset, and expand its functions."""
    import onnx
    from onnx import inliner

    domains = {each.domain: each.version for each in model.opset_import}
    if "" not in domains and "ai.onnx" in domains:
        domains[""] = domains["ai.onnx"]
    if "" not in domains and domains:  # a model of operators of other domains alone
        domains[""] = onnx.defs.onnx_opset_version()
        model.opset_import.add(domain="", version=domains[""])
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
) -> tuple[tuple[Tensor, ...], Folded, Mapping[str, Array], int]:
    """Bind the inputs, and compute what the graph's outputs depend on and is known."""
    opset = max(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    needed = needed_nodes(graph)
    refuse_unknown_operators(needed, opset)
    if graph.sparse_initializer:
        raise OperatorsUnsupported("sparse initializers are not supported")
    scope = Scope(graph, folder, opset)
    nodes = scope.nodes_of(needed)
    names = {each.name for each in graph.initializer}
    inputs = bound_inputs([each for each in graph.input if each.name not in names], dimensions, shapes)
    folding = Folding({"": opset}, min(model.ir_version, 13), scope)
    for tensor in inputs:
        folding.enter(tensor)
    folded = folding.fold(nodes)
    for each in graph.output:
        folding.require(each.name)
    refuse_types(folded)
    return inputs, folded, scope.arrays, opset


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
    weights, constants = weights_and_constants(used - {tensor.name for tensor in inputs}, folded, arrays)
    return Graph(inputs, tuple(outputs), tuple(folded.nodes), weights, constants, folded.values, opset)
