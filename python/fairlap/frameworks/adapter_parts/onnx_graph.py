"""The ONNX graph of a model as bytes, or as the file that a user brought, and the weights in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.files.model_file import array_of
from fairlap.models.onnx_import.subgraphs import graphs_under
from fairlap.models.sources.onnx_graphs.arrays_beside import DATA, arrays_beside
from fairlap.models.workload import Workload


def graph_of(work: Workload, weights: Arrays, reader: str = "onnx") -> bytes | str:
    """Build the bytes of a graph, or find the path of a file; ONNX Runtime and OpenVINO take either.

    A user's model may have a file for one reader alone.
    """
    implementation = work.implementation(reader if work.package.startswith("/") else "onnx")
    file: Path | None = getattr(implementation, "file", None)
    if file is not None:
        return str(file)
    graph: bytes = implementation.build(weights, work.batch, **work.free_sizes).SerializeToString()
    return graph


def takes_other_sizes(work: Workload) -> bool:
    """Whether the graph has open sizes, as that of a user's model whose calls change theirs."""
    return bool(getattr(work.implementation("onnx"), "takes_other_sizes", False))


def files_of(work: Workload, reader: str = "onnx") -> tuple[Path, ...]:
    """Find the files that a framework reads a user's model from: the graph, its weights, its encoder's graph."""
    file: Path | None = getattr(work.implementation(reader), "file", None)
    if file is None:
        return ()
    encoder = _encoder_file(work, reader)
    graphs = [file, *([Path(encoder)] if encoder else [])]
    return tuple(dict.fromkeys(each for graph in graphs for each in (graph, *_beside(graph))))


def _beside(graph: Path) -> list[Path]:
    named = [graph.with_suffix(".bin")] if graph.suffix == ".xml" else [graph.with_name(DATA), arrays_beside(graph)]
    return [each for each in named if each.is_file()]


def encoder_of(work: Workload, weights: Arrays, reader: str = "onnx") -> bytes | str:
    """Build the encoder of a model that generates, or find its file; empty where it has none."""
    if work.package.startswith("/"):
        return _encoder_file(work, reader)
    build = getattr(work.implementation("onnx"), "build_encoder", None)
    graph: bytes = build(weights, work.batch).SerializeToString() if build else b""
    return graph


def _encoder_file(work: Workload, reader: str) -> str:
    return str(getattr(work.implementation(reader), "encoder", None) or "")


def weights_of_both(step: bytes | str, encoder: bytes | str, given: Arrays) -> Answers:
    """Read those of a model that generates: a user's file of a step is all that is compared."""
    of_encoder = weights_in(encoder, given) if isinstance(encoder, bytes) and encoder else {}
    return {**of_encoder, **weights_in(step, given)}


def weights_in(graph: bytes | str, given: Arrays) -> Answers:
    """Read the weights by name, from initializers and constants, also of branches and loops.

    Several of these may use one name, to which the importer adds a number: then their content decides which is which.
    One that equals its weight in value becomes that weight, to avoid a second copy in memory.
    """
    return _weights_of(*_loaded(graph), given)


def weights_and_fp8_in(graph: bytes | str, given: Arrays) -> tuple[Answers, bool]:
    """Read the weights, and whether the graph has any in fp8, as files of users may."""
    import onnx

    model, folder = _loaded(graph)
    initializers = (each for inner in graphs_under(model.graph) for each in inner.initializer)
    holds_fp8 = any(each.data_type == onnx.TensorProto.FLOAT8E4M3FN for each in initializers)
    return _weights_of(model, folder, given), holds_fp8


def _loaded(graph: bytes | str) -> tuple[Any, Path]:
    """Parse the graph, and find the folder that has its data in other files."""
    import onnx

    if isinstance(graph, bytes):
        return onnx.load_from_string(graph), Path()
    return onnx.load_model(graph, load_external_data=False), Path(graph).parent


def _weights_of(model: Any, folder: Path, given: Arrays) -> Answers:
    own = {name for name, _ in _arrays_in(model.graph, folder)}
    sharing: dict[str, list[str]] = {}
    for name in given:
        sharing.setdefault(name if name in own else name.rpartition("/")[0], []).append(name)
    held: dict[str, Any] = {}
    for own_name, read in _arrays_in(model.graph, folder):
        for name in (each for each in sharing.get(own_name, ()) if held.get(each) is not given[each]):
            array = read()
            if np.array_equal(array, given[name]):
                held[name] = given[name]
            else:
                held.setdefault(name, array)
    return held


def _arrays_in(graph: Any, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """``folder`` has the data that are in other files."""
    from onnx import numpy_helper

    for inner in graphs_under(graph):
        for initializer in inner.initializer:
            external = initializer.data_location == initializer.EXTERNAL
            read = partial(array_of, initializer, folder) if external else partial(numpy_helper.to_array, initializer)
            yield initializer.name, read
        for node in (each for each in inner.node if each.op_type == "Constant"):
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield node.output[0], partial(numpy_helper.to_array, attribute.t)
                elif attribute.name == "value_floats":
                    yield node.output[0], partial(np.array, attribute.floats, np.float32)
