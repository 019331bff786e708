"""What following control flow has in common: graphs inside of nodes are put in place, or become bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.models.onnx_import.assembly import refuse_types, weights_and_constants
from fairlap.models.onnx_import.errors import ModelFileInvalid, OperatorsUnsupported
from fairlap.models.onnx_import.evaluation import attributes_of
from fairlap.models.onnx_import.graph import MOST_ELEMENTS, Array, Folded, Graph, Node, Tensor, needed_nodes
from fairlap.models.onnx_import.libraries.control import MOST_TRIPS

if TYPE_CHECKING:
    from fairlap.models.onnx_import.folding import Folding

Kind = tuple[str, tuple[int, ...]]  # a type and a shape


@dataclass(frozen=True)
class Body:
    """A graph inside of a node. It sees what is known outside, and takes all other values as inputs."""

    formals: tuple[Tensor, ...]  # its own inputs, those that are known too
    outputs: tuple[Tensor, ...]
    captured: tuple[str, ...]  # values of outside, weights too
    folded: Folded
    constants: dict[str, Array]

    def known(self, place: int) -> Array | None:
        """Read an output that is the same in every call."""
        return self.folded.known.get(self.outputs[place].name)

    def graph(self, captured: Sequence[str], folding: Folding) -> Graph:
        """Take these values of outside after its own inputs."""
        folded = self.folded
        own = [each for each in self.formals if each.name not in folded.known]
        outside = [folding.result.values[name] for name in captured if folding.require(name)]
        used = {name for node in folded.nodes for name in (*node.inputs, *node.outputs) if name}
        values = {name: folded.values[name] for name in used.union(self.constants)}
        values |= {each.name: each for each in (*own, *outside, *self.outputs)}
        return Graph((*own, *outside), self.outputs, tuple(folded.nodes), {}, self.constants, values, folding.opset)


def graph_of(proto: Any, node: Node, name: str, inputs: int, outputs: int) -> Any:
    """Find the attribute that holds a graph with so many inputs and at least so many outputs."""
    for attribute in proto.attribute:
        if attribute.name == name and attribute.HasField("g"):
            graph = attribute.g
            if len(graph.input) == inputs and len(graph.output) >= outputs:
                return graph
    raise ModelFileInvalid(f"{node.operator} {node.name!r} has no valid {name}")


def body_of(folding: Folding, graph: Any, formals: Sequence[Tensor], known: Mapping[int, Array]) -> Body:
    """Fold a graph whose inputs have these types, some of which may be known."""
    inside, scope = folding.inside(), folding.scope
    own = tuple(replace(each, name=scope.fresh(each.name)) for each in formals)
    for place, tensor in enumerate(own):
        inside.enter(tensor, known.get(place))
    nodes, ends = scope.copied(graph, [each.name for each in own], again=False)
    folded = inside.fold(nodes)
    _require_ends(inside, ends)
    refuse_types(folded)
    folded.nodes = needed_nodes(folded.nodes, ends)
    used = {name for node in folded.nodes for name in node.inputs if name}.union(ends)
    used -= {name for node in folded.nodes for name in node.outputs}
    used -= {each.name for place, each in enumerate(own) if place not in known}
    _, constants = weights_and_constants(used, folded, scope.arrays)
    captured = tuple(sorted(used - constants.keys()))
    at_build = {name: array for name, array in folded.known.items() if name not in captured}
    for node in folded.nodes:  # refuses what cannot be built
        attributes_of(node, at_build, folded.values, folding.opset)
    return Body(own, tuple(folded.values[name] for name in ends), captured, folded, constants)


def placed(folding: Folding, graph: Any, given: Sequence[str], *, again: bool) -> tuple[str, ...]:
    """Put the graph's nodes in place of its node, with ``given`` names for its inputs, and name its results."""
    nodes, ends = folding.scope.copied(graph, given, again=again)
    folding.fold(nodes)
    _require_ends(folding, ends)
    return ends


def _require_ends(folding: Folding, ends: Sequence[str]) -> None:
    for name in ends:
        if not folding.require(name):
            raise ModelFileInvalid(f"nothing computes {name!r}, a result of a branch or a loop")


def give_names(folding: Folding, ends: Sequence[str], names: Sequence[str]) -> None:
    for end, name in zip(ends, names, strict=False):
        if name:
            add(folding, "Identity", (end,), name)


def add(folding: Folding, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> None:
    from onnx import helper

    node = Node(operator, tuple(inputs), (output,), attributes)
    folding.fold([(helper.make_node(operator, inputs, [output], **attributes), node)])


def constant(folding: Folding, name: str, array: Array) -> str:
    name = folding.scope.fresh(name)
    folding.enter(Tensor(name, str(array.dtype), array.shape), array)
    return name


def stack(folding: Folding, rows: Sequence[str], name: str) -> None:
    """Join values of one shape along a new first axis."""
    shape = folding.result.values[rows[0]].shape
    wanted = constant(folding, f"{name} row", np.array((1, *shape), np.int64))
    wide = [folding.scope.fresh(f"{row} as row") for row in rows]
    for row, one in zip(rows, wide, strict=True):
        add(folding, "Reshape", (row, wanted), one)
    add(folding, "Concat", wide, name, axis=0)


def single(folding: Folding, name: str) -> Any:
    """Read a number that is known; None where it is not, or where nothing has the name."""
    array = folding.result.known.get(name) if name and folding.require(name) else None
    return array.reshape(()).item() if array is not None and array.size == 1 else None


def require_single(folding: Folding, node: Node, name: str, dtype: str) -> None:
    if name:
        tensor = folding.result.values[name]
        if tensor.size != 1 or tensor.dtype != dtype:
            raise ModelFileInvalid(f"{node.operator} {node.name!r} needs {name!r} to be one number of type {dtype}")


def formals_of(folding: Folding, node: Node, given: Sequence[str], inputs: Sequence[Any]) -> list[Tensor]:
    """Give inputs of a body the types of the values that they get."""
    if not all(given):
        raise ModelFileInvalid(f"{node.operator} {node.name!r} lacks an input")
    return [replace(folding.result.values[name], name=each.name) for name, each in zip(given, inputs, strict=True)]


def require_same(node: Node, before: Sequence[Tensor], after: Sequence[Tensor]) -> None:
    """Refuse states that do not keep their types from trip to trip."""
    for old, new in zip(before, after, strict=True):
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            raise OperatorsUnsupported(
                f"{node.operator} {node.name!r} makes {new.dtype} of shape {new.shape} of {old.name!r}, which is"
                f" {old.dtype} of shape {old.shape}"
            )


def require_few(node: Node, trips: int) -> None:
    if trips > MOST_TRIPS:
        raise ModelFileInvalid(f"{node.operator} {node.name!r} runs {trips:,} times, over the limit of {MOST_TRIPS:,}")


def emit(folding: Folding, node: Node, inputs: Sequence[str], results: Sequence[Kind], attributes: Any) -> None:
    """Leave the node in the graph, with bodies and all that they take."""
    for name, (dtype, shape) in zip(node.outputs, results, strict=False):
        tensor = Tensor(name, dtype, shape)
        if tensor.size > MOST_ELEMENTS:
            raise ModelFileInvalid(
                f"{node.operator} {node.name!r} computes {tensor.size:,} elements, over the limit of {MOST_ELEMENTS:,}"
            )
        if name:
            folding.enter(tensor)
    folding.result.nodes.append(replace(node, inputs=tuple(inputs), attributes=attributes))
