"""Models with control flow, and what they compute by hand in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.models.onnx_import import Graph, build, load_graph
from fairlap.models.onnx_import.build import LibraryName
from onnx import ModelProto, numpy_helper, parser
from onnx_files import drawn

Arrays = Mapping[str, np.ndarray]
MATRIX = drawn(3, 3)
_WIDE = MATRIX.astype(np.float64)


def model_of(text: str, opset: int = 17) -> ModelProto:
    """Read a model in ONNX's own notation, with a weight ``w`` of three rows and columns beside its own arrays."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    model.graph.initializer.append(numpy_helper.from_array(MATRIX, "w"))
    return model


def loaded(model: ModelProto, folder: Path) -> Graph:
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return load_graph(folder / "m.onnx")


@dataclass(frozen=True)
class Case:
    text: str
    inputs: Arrays
    by_hand: Callable[[Arrays], Arrays]
    slope: Callable[[Arrays], np.ndarray] | None = None  # of the sum of y with respect to x, by hand
    only_forwards: bool = False  # in JAX


BRANCHES = """g (float[2,3] x) => (float[2,3] y) <float zero = {0}> {
  most = ReduceMax <keepdims = 0> (x)
  positive = Greater (most, zero)
  y = If (positive) <
    then_branch = a () => (float[2,3] then) { product = MatMul (x, w)  then = Neg (product) },
    else_branch = b () => (float[2,3] else) { product = MatMul (x, w)  else = Mul (product, product) }>
}"""

BY_COUNT = """g (float[2,3] x, int64 n) => (float[2,3] y) {
  y = Loop (n, "", x) <body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
    d = Identity (c)  t = MatMul (s, w) }>
}"""

UNTIL_SMALL = """g (float[2,3] x) => (float[2,3] y, int64 count)
<float half = {0.5}, float one = {1}, int64 zero = {0}, int64 step = {1}, bool yes = {1}> {
  y, count = Loop ("", yes, x, zero) <
    body = b (int64 i, bool c, float[2,3] s, int64 k)
    => (bool d, float[2,3] t, int64 m) {
    t = Mul (s, half)  m = Add (k, step)
    size = Abs (t)  most = ReduceMax <keepdims = 0> (size)  d = Greater (most, one) }>
}"""

MANY_TRIPS = """g (float[2,3] x) => (float[2,3] y, float[100,2,3] all) <int64 trips = {100}, float scale = {0.03125}> {
  y, all = Loop (trips, "", x) <body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t, float[2,3] u) {
    d = Identity (c)  number = Cast <to = 1> (i)  product = MatMul (s, w)  small = Mul (product, scale)
    moved = Add (small, number)  t = Add (s, small)  u = Mul (moved, scale) }>
}"""

SCANNED = """g (float[2,5,3] x, float[2,3] s0) => (float[2,3] y, float[2,3,5] all) {
  y, all = Scan (s0, x) <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
    scan_output_axes = [-1], scan_output_directions = [1],
    body = b (float[2,3] s, float[2,3] row) => (float[2,3] t, float[2,3] u) {
      product = MatMul (s, w)  t = Add (product, row)  u = Neg (t) }>
}"""


KERNEL = np.array([[1, 2], [3, 4], [5, -6]], np.float32)

CONVOLVED = """g (float[1,2,4,5] x, bool c) => (float[1,3,4,5] y) <float[3,2,1,1] k = {1, 2, 3, 4, 5, -6}> {
  y = If (c) <
    then_branch = a () => (float[1,3,4,5] r) { r = Conv (x, k) },
    else_branch = b () => (float[1,3,4,5] r) { image = Neg (x)  r = Conv (image, k) }>
}"""


def _power(trips: int) -> np.ndarray:
    return np.linalg.matrix_power(_WIDE, trips)


def _until_small(inputs: Arrays) -> Arrays:
    y, count = inputs["x"].astype(np.float64), 0
    while count == 0 or np.abs(y).max() > 1:
        y, count = y / 2, count + 1
    return {"y": y, "count": np.array(count)}


def _many_trips(inputs: Arrays) -> Arrays:
    y, rows = inputs["x"].astype(np.float64), []
    for number in range(100):
        small = y @ _WIDE / 32
        rows.append((small + number) / 32)
        y = y + small
    return {"y": y, "all": np.stack(rows)}


def _scanned(inputs: Arrays) -> Arrays:
    y, rows = inputs["s0"].astype(np.float64), {}
    for place in reversed(range(5)):
        y = y @ _WIDE + inputs["x"][:, place]
        rows[place] = -y
    return {"y": y, "all": np.stack([rows[place] for place in range(5)], -1)}


def _slope_of_scanned(inputs: Arrays) -> np.ndarray:
    """Multiply the row at a place by the matrix once for each of those before it, which are read later."""
    columns = [np.broadcast_to(_power(place).sum(1), (2, 3)) for place in range(5)]
    return np.stack(columns, 1)


def _rows(matrix: np.ndarray) -> np.ndarray:
    return np.broadcast_to(matrix.sum(1), (2, 3))


X = np.abs(drawn(2, 3, seed=4)) + np.float32(0.1)

CASES: Mapping[str, Case] = {
    "If, then": Case(BRANCHES, {"x": X}, lambda g: {"y": -(g["x"] @ _WIDE)}, lambda g: -_rows(_power(1))),
    "If, else": Case(
        BRANCHES,
        {"x": -X},
        lambda g: {"y": (g["x"] @ _WIDE) ** 2},
        lambda g: 2 * (g["x"] @ _WIDE) @ _WIDE.T,
    ),
    "Loop, by count": Case(
        BY_COUNT,
        {"x": X, "n": np.array(4)},
        lambda g: {"y": g["x"] @ _power(4)},
        lambda g: _rows(_power(4)),
        only_forwards=True,
    ),
    "Loop, no trip": Case(
        BY_COUNT, {"x": X, "n": np.array(0)}, lambda g: {"y": g["x"]}, lambda g: np.ones((2, 3)), only_forwards=True
    ),
    "Loop, until": Case(
        UNTIL_SMALL,
        {"x": 40 * X},
        _until_small,
        lambda g: np.full((2, 3), 0.5 ** int(_until_small(g)["count"])),
        only_forwards=True,
    ),
    "Loop, 100 trips": Case(
        MANY_TRIPS,
        {"x": X},
        _many_trips,
        lambda g: _rows(np.linalg.matrix_power(np.eye(3) + _WIDE / 32, 100)),
    ),
    "If, with images": Case(
        CONVOLVED,
        {"x": drawn(1, 2, 4, 5), "c": np.array(False)},
        lambda g: {"y": -np.einsum("oi,bihw->bohw", KERNEL, g["x"], dtype=np.float64)},
        lambda g: np.broadcast_to(-KERNEL.sum(0).reshape(1, 2, 1, 1), (1, 2, 4, 5)),
    ),
    "Scan": Case(SCANNED, {"x": drawn(2, 5, 3), "s0": drawn(2, 3, seed=1)}, _scanned, _slope_of_scanned),
}


def answers(graph: Graph, library: LibraryName, inputs: Arrays) -> dict[str, np.ndarray]:
    """As a function that the library compiles, where it does."""
    model = build(graph, library)
    weights = model.prepare(graph.weights)
    if library == "numpy":
        return {name: np.asarray(each) for name, each in model(weights, inputs).items()}
    if library == "torch":
        import torch

        return {k: v.numpy() for k, v in model(weights, {k: torch.tensor(v) for k, v in inputs.items()}).items()}
    if library == "jax":
        import jax

        return {k: np.asarray(v) for k, v in jax.jit(model)(weights, dict(inputs)).items()}
    import tensorflow as tf

    given = {name: tf.constant(each) for name, each in inputs.items()}
    return {k: v.numpy() for k, v in tf.function(model, autograph=False)(weights, given).items()}


def slope(graph: Graph, library: LibraryName, inputs: Arrays) -> np.ndarray:
    """Differentiate the sum of y with respect to x."""
    model = build(graph, library)
    weights = model.prepare(graph.weights)
    if library == "torch":
        import torch

        given = {name: torch.tensor(each) for name, each in inputs.items()}
        given["x"].requires_grad_(True)
        model(weights, given)["y"].sum().backward()
        return np.asarray(given["x"].grad)
    if library == "jax":
        import jax

        return np.asarray(jax.jit(jax.grad(lambda x: model(weights, {**inputs, "x": x})["y"].sum()))(inputs["x"]))
    import tensorflow as tf

    def of(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(model(weights, {**{k: tf.constant(v) for k, v in inputs.items()}, "x": x})["y"])
        return tape.gradient(total, x)

    return np.asarray(tf.function(of, autograph=False)(tf.constant(inputs["x"])))
