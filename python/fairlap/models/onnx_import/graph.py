"""An ONNX graph as fairlap holds it: every size known, weights by name, no protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MOST_ELEMENTS = 2**36  # of any value of a model


@dataclass(frozen=True)
class Tensor:
    """The type of a value. ``dtype`` is NumPy's name for it: float32, int64, bool, bfloat16, ..."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1


PADDING = "padding"  # attribute of a lookup of rows: the row that gets no gradient through it


@dataclass(frozen=True)
class Node:
    """One operation. A missing optional input or output has an empty name."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    name: str = ""


@dataclass(frozen=True)
class Graph:
    """A model.

    ``weights`` are the arrays that count as parameters, by the names that the file gives them; ``constants`` are all
    others: shapes, indices, scalars and masks, which cannot be replaced after building.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    weights: dict[str, Array]
    constants: dict[str, Array]
    values: Mapping[str, Tensor]  # the type of every value by name: inputs, weights, constants, results
    opset: int

    def graphs(self) -> Iterator[Graph]:
        """Walk through this one, and the bodies inside of its nodes."""
        yield self
        for node in self.nodes:
            for body in bodies_of(node):
                yield from body.graphs()


@dataclass
class Folded:
    """A graph whose sizes are being found: its nodes so far, the type of every value, and what is known of values."""

    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Tensor] = field(default_factory=dict)
    known: dict[str, Array] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)  # floating-point results that are known here but stay in the graph

    def copied(self) -> Folded:
        return Folded(list(self.nodes), dict(self.values), dict(self.known), set(self.computed))


def bodies_of(node: Node) -> list[Graph]:
    """Of control flow. What a body reads from outside is among its inputs, and among those of the node."""
    return [each for each in node.attributes.values() if isinstance(each, Graph)]


def needed_nodes(nodes: Sequence[Node], outputs: Iterable[str]) -> list[Node]:
    """Keep those of which an output needs something, in their order, which is that of computing."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
    return kept[::-1]
