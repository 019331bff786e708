"""The node tests that ship with the package onnx, run through the importer."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.models.onnx_import import Graph, build, load_graph
from fairlap.models.onnx_import.build import LibraryName
from fairlap.models.onnx_import.operators.table import OPERATORS, claimed
from fairlap.models.onnx_import.subgraphs import names_read_by
from onnx import ModelProto, TensorProto, numpy_helper

Array = npt.NDArray[Any]

LIBRARIES: tuple[LibraryName, ...] = ("numpy", "torch", "jax", "tensorflow")

EXCLUDED = {
    "types of fewer than eight bits, of eight-bit floating-point numbers and of strings": (
        "FLOAT8",
        "FLOAT4",
        "FLOAT6",
        "INT4",
        "INT2",
        "e4m3fn",
        "e5m2",
        "float4",
        "float8",
        "int4",
        "int2",
        "string",
    ),
    "sequences and optional values": (
        "test_identity_opt",
        "test_identity_sequence",
        "test_if_opt",
        "test_if_seq",
        "test_loop13_seq",
        "test_loop16_seq_none",
    ),
    "training: it draws random numbers or updates statistics": (
        "_training_mode",
        "test_training_dropout(_default)?(_mask)?$",
    ),
    "the places of the largest elements, MaxPool's second output": ("test_maxpool_with_argmax",),
}
"""Cases of claimed operators that do not count, by the reason: patterns found in their names."""

EXCLUDED_IN_NUMPY = {
    "float64 rounds a tie of float32 to the other side": ("test_dynamicquantizelinear",),
}

SIXTEEN_BITS = {"float16": 2e-3, "bfloat16": 2e-2}
"""Relative tolerances that the types themselves need: two steps of their precision."""


@dataclass(frozen=True)
class Case:
    name: str
    model: ModelProto  # with operands that must be known as initializers
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    rtol: float
    atol: float

    @property
    def operators(self) -> frozenset[str]:
        return frozenset(node.op_type for node in self.model.graph.node)


def reason_to_exclude(name: str, library: LibraryName | None = None) -> str | None:
    excluded = {**EXCLUDED, **(EXCLUDED_IN_NUMPY if library == "numpy" else {})}
    return next((reason for reason, parts in excluded.items() if any(re.search(part, name) for part in parts)), None)


def claimed_cases() -> Iterator[Case]:
    """Those whose operators are all claimed, excluded ones too."""
    from onnx.backend.test.loader import load_node_model_tests

    accepted = {*claimed(), "Constant"}
    for case in load_node_model_tests():
        nodes = case.model.graph.node
        if all(node.op_type in accepted and not node.domain for node in nodes):
            yield _case(case)


def _case(case: Any) -> Case:
    model = ModelProto()
    model.CopyFrom(case.model)
    before, after = case.data_sets[0]
    arrays = dict(zip((each.name for each in model.graph.input), map(_array, before), strict=True))
    wanted = dict(zip((each.name for each in model.graph.output), map(_array, after), strict=True))
    for name in _known_inputs(model):
        if name in arrays and arrays[name].dtype.kind != "O":
            model.graph.initializer.append(numpy_helper.from_array(arrays.pop(name), name))
    return Case(case.name, model, arrays, wanted, case.rtol, case.atol)


def _array(value: Any) -> Array:
    if isinstance(value, list):  # a sequence, whose arrays may have several sizes
        found = np.empty(len(value), object)
        for place, each in enumerate(value):
            found[place] = each
        return found
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _known_inputs(model: ModelProto) -> set[str]:
    """Find what operands that must be known depend on."""
    producers = {name: node for node in model.graph.node for name in node.output}
    waiting = [
        node.input[place]
        for node in model.graph.node
        if node.op_type in OPERATORS
        for place in OPERATORS[node.op_type].operands.values()
        if place < len(node.input)
    ]
    for node in model.graph.node:
        if node.op_type == "Loop" and len(node.output) > len(node.input) - 2:  # results of as many rows as it has trips
            waiting += node.input[:2]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name and name not in found:
            found.add(name)
            producer = producers.get(name)
            if producer is not None and producer.op_type not in ("Shape", "Size"):
                waiting += names_read_by(producer)
    return found


def loaded(case: Case) -> Graph:
    unbound = {
        each.name
        for each in case.model.graph.input
        if any(not dim.HasField("dim_value") for dim in each.type.tensor_type.shape.dim)
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(case.model.SerializeToString())
        return load_graph(path, shapes={name: case.inputs[name].shape for name in unbound & case.inputs.keys()})


def check(case: Case, graph: Graph, library: LibraryName) -> None:
    """Raise if an answer has another type, another shape or other numbers than it should."""
    answers = answers_of(case, graph, library)
    for name, wanted in case.outputs.items():
        found = answers[name]
        assert found.shape == wanted.shape, f"{name} has the shape {found.shape} instead of {wanted.shape}"
        if library != "numpy" or wanted.dtype.kind in "iub":
            assert found.dtype == wanted.dtype, f"{name} has the type {found.dtype} instead of {wanted.dtype}"
        rtol = max(case.rtol, SIXTEEN_BITS.get(wanted.dtype.name, 0))
        if wanted.dtype.name == "bfloat16":
            found, wanted = found.astype(np.float32), wanted.astype(np.float32)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=case.atol, err_msg=name)


def answers_of(case: Case, graph: Graph, library: LibraryName) -> dict[str, Array]:
    model = build(graph, library)
    enter, call, leave = _FACES[library]()
    weights = model.prepare(graph.weights)
    results = call(model)(weights, {name: enter(array) for name, array in case.inputs.items()})
    return {name: leave(result) for name, result in results.items()}


Face = tuple[Callable[[Array], Any], Callable[[Any], Any], Callable[[Any], Array]]


def _numpy() -> Face:
    return np.asarray, lambda model: model, np.asarray


def _torch() -> Face:
    import torch

    def enter(array: Array) -> Any:
        if array.dtype.name == "bfloat16":
            return torch.tensor(array.astype(np.float32), dtype=torch.bfloat16)
        return torch.tensor(array)

    def leave(tensor: Any) -> Array:
        if tensor.dtype == torch.bfloat16:
            import ml_dtypes

            return np.asarray(tensor.float().numpy().astype(ml_dtypes.bfloat16))
        return np.asarray(tensor)

    return enter, lambda model: model, leave


def _jax() -> Face:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray, jax.jit, np.asarray


def _tensorflow() -> Face:
    import tensorflow as tf

    return tf.constant, partial(tf.function, autograph=False), np.asarray


_FACES: Mapping[str, Callable[[], Face]] = {
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
}
