"""Copy the graphs inside of nodes to where they are followed, under names that nothing else has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from fairlap.models.onnx_import.control_flow.branches import rename, renamed
from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.files.model_file import array_of
from fairlap.models.onnx_import.graph import Array, Node
from fairlap.models.onnx_import.nodes import constant_of, needed_nodes, node_of, refuse_unknown_operators
from fairlap.models.onnx_import.subgraphs import graphs_under

MOST_COPIED = 2**17  # nodes of bodies, all together

_SCOPES = count()


class Scope:
    """All names of a file, and its arrays, each of which is read where it is first used."""

    def __init__(self, graph: Any, folder: Path, opset: int) -> None:
        self.folder, self.opset = folder, opset
        self.arrays: dict[str, Array] = {}  # those that were read
        self.copied_nodes = 0
        self._unread: dict[str, Callable[[], Array]] = {}
        self._mark = f"array of file {next(_SCOPES)}"  # on what bodies hold, and on its copies, once it is known here
        self._numbers: dict[str, int] = {}
        self._everywhere = {name for each in graphs_under(graph) for name in _names_in(each)}
        self._used = set(_names_in(graph))
        for tensor in graph.initializer:
            self._unread[tensor.name] = partial(array_of, tensor, folder)
        for node in _constants(graph):
            self._unread[node.output[0]] = partial(constant_of, node, folder)

    def array(self, name: str) -> Array | None:
        """Read an array of the file, or of a body that was copied."""
        if name not in self.arrays and name in self._unread:
            self.arrays[name] = self._unread.pop(name)()
        return self.arrays.get(name)

    def nodes_of(self, protos: Iterable[Any]) -> list[tuple[Any, Node]]:
        """All but the constants, which are arrays here."""
        return [(each, node_of(each, self.folder)) for each in protos if each.op_type != "Constant"]

    def fresh(self, name: str) -> str:
        """Make the name one that nothing has yet: itself, if it can be."""
        if name in self._used:
            number = self._numbers.get(name, 1) + 1
            while f"{name}/{number}" in self._used or f"{name}/{number}" in self._everywhere:
                number += 1
            self._numbers[name] = number
            name = f"{name}/{number}"
        self._used.add(name)
        return name

    def copied(self, body: Any, given: Sequence[str], *, again: bool) -> tuple[list[tuple[Any, Node]], tuple[str, ...]]:
        """Copy what the body's results depend on, and name the results.

        ``given`` are the names that its inputs have outside. If it is copied ``again``, the arrays of all bodies inside
        of it are made known first, so that each is one array for all copies.
        """
        for graph in graphs_under(body) if again else (body,):
            self._lift(graph)
        kept = [node for node in needed_nodes(body) if node.op_type != "Constant"]
        refuse_unknown_operators(kept, self.opset)
        self.copied_nodes += size_of(body)
        if self.copied_nodes > MOST_COPIED:
            raise ModelFileInvalid(f"the branches and loops of the file are over {MOST_COPIED:,} nodes")
        names = dict(zip((each.name for each in body.input), given, strict=True))
        for node in kept:
            names.update({name: self.fresh(name) for name in node.output if name})
        nodes = self.nodes_of([renamed(node, names) for node in kept])
        return nodes, tuple(names.get(each.name, each.name) for each in body.output)

    def _lift(self, body: Any) -> None:
        """Make arrays of the body arrays of the file."""
        names: dict[str, str] = {}
        for tensor in (each for each in body.initializer if each.doc_string != self._mark):
            names[tensor.name] = self._entered(tensor.name, partial(array_of, tensor, self.folder))
            tensor.name, tensor.doc_string = names[tensor.name], self._mark
        for node in (each for each in _constants(body) if each.doc_string != self._mark):
            names[node.output[0]] = self._entered(node.output[0], partial(constant_of, node, self.folder))
            node.doc_string = self._mark
        changed = {name: new for name, new in names.items() if name != new}
        if changed:
            for node in body.node:
                rename(node, changed)
            for result in body.output:
                result.name = changed.get(result.name, result.name)

    def _entered(self, name: str, read: Callable[[], Array]) -> str:
        new = self.fresh(name)
        self._unread[new] = read
        return new


def _constants(graph: Any) -> list[Any]:
    return [node for node in graph.node if node.op_type == "Constant" and len(node.output) == 1]


def _names_in(graph: Any) -> set[str]:
    made = {name for node in graph.node for name in node.output if name}
    return made | {each.name for each in (*graph.initializer, *graph.input)}


def size_of(body: Any) -> int:
    """Count its nodes, and those inside of them."""
    return sum(len(each.node) for each in graphs_under(body))
