"""If, Loop and Scan compute what a loop by hand computes, in every library, and have its gradients."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.frameworks.adapter_parts.onnx_graph import weights_in
from fairlap.models.onnx_import import build
from fairlap.models.onnx_import.build import LibraryName
from fairlap.models.onnx_import.libraries.control import MOST_TRIPS
from margins import by_onnxruntime
from onnx_files import drawn
from onnx_loops import BY_COUNT, CASES, MATRIX, answers, loaded, model_of, slope

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")

EVERY: tuple[LibraryName, ...] = ("numpy", "torch", "jax", "tensorflow")


@pytest.mark.parametrize("library", EVERY)
@pytest.mark.parametrize("name", CASES)
def test_control_flow_computes_what_a_loop_by_hand_computes(name: str, library: LibraryName, tmp_path: Path) -> None:
    if library != "numpy":
        pytest.importorskip(library, reason="`make test` installs it and runs this")
    case = CASES[name]
    graph = loaded(model_of(case.text), tmp_path)
    assert set(graph.weights) <= {"w", "k"}
    found = answers(graph, library, case.inputs)
    for output, right in case.by_hand(case.inputs).items():
        assert found[output].shape == right.shape
        np.testing.assert_allclose(found[output], right, rtol=1e-12 if library == "numpy" else 1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_onnx_runtime_computes_the_same(name: str) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    case = CASES[name]
    found = by_onnxruntime(model_of(case.text), case.inputs)
    for output, right in case.by_hand(case.inputs).items():
        np.testing.assert_allclose(found[output], right, rtol=1e-4, atol=1e-5)


@pytest.mark.slow_but("Scan")
@pytest.mark.parametrize("library", EVERY[1:])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.slope is not None])
def test_gradients_are_those_of_the_loop_by_hand(name: str, library: LibraryName, tmp_path: Path) -> None:
    pytest.importorskip(library, reason="`make test` installs it and runs this")
    case = CASES[name]
    graph = loaded(model_of(case.text), tmp_path)
    assert case.slope is not None
    if library == "jax" and case.only_forwards:
        with pytest.raises(ValueError, match="Reverse-mode"):
            slope(graph, library, case.inputs)
        return
    np.testing.assert_allclose(slope(graph, library, case.inputs), case.slope(case.inputs), rtol=1e-4, atol=1e-6)


GROWING = """g (float[2,3] x) => (float[n,3] y) <int64 trips = {4}> {
  y = Loop (trips, "", x) <body = b (int64 i, bool c, float[n,3] s) => (bool d, float[m,3] t) {
    d = Identity (c)  u = MatMul (s, v)  t = Concat <axis = 0> (s, u) }>
}"""


def test_a_loop_of_known_length_is_put_in_place_so_that_its_states_may_grow(tmp_path: Path) -> None:
    model = model_of(GROWING.replace("s, v)", "s, w)"))
    graph = loaded(model, tmp_path)
    assert graph.outputs[0].shape == (32, 3)
    assert "Loop" not in {node.operator for node in graph.nodes}
    x = drawn(2, 3)
    right = x.astype(np.float64)
    for _ in range(4):
        right = np.concatenate([right, right @ MATRIX.astype(np.float64)])
    np.testing.assert_allclose(answers(graph, "numpy", {"x": x})["y"], right, rtol=1e-12)


SAME_NAMES = """g (float[2,3] x, bool first) => (float[2,3] y) {
  one = If (first) <
    then_branch = a () => (float[2,3] r) <float[3] k = {1, 2, 3}> { r = Mul (x, k) },
    else_branch = b () => (float[2,3] r) <float[3] k = {4, 5, 6}> { r = Mul (x, k) }>
  two = Loop (trips, "", one) <
    body = c (int64 i, bool c, float[2,3] one) => (bool d, float[2,3] r) <float[3] k = {7, 8, 9}> {
    d = Identity (c)  x = Mul (one, k)  r = Add (x, x) }>
  y = MatMul (two, w)
}"""


@pytest.mark.parametrize("trips", [3, 100])
@pytest.mark.parametrize("first", [True, False])
def test_bodies_may_use_the_same_names_and_those_of_outside(first: bool, trips: int, tmp_path: Path) -> None:
    model = model_of(SAME_NAMES)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(trips), "trips"))
    graph = loaded(model, tmp_path)
    assert sorted(len(each) for each in graph.weights.values()) == [3, 3, 3, 3]  # each once, w too
    x = drawn(2, 3).astype(np.float64)
    right = (x * ([1, 2, 3] if first else [4, 5, 6]) * (2.0 * np.array([7, 8, 9])) ** trips) @ MATRIX
    found = answers(graph, "numpy", {"x": drawn(2, 3), "first": np.array(first)})["y"]
    np.testing.assert_allclose(found, right, rtol=1e-10)
    held = weights_in(model.SerializeToString(), graph.weights)
    assert all(held[name] is array for name, array in graph.weights.items())


ENDLESS = """g (float[2,3] x) => (float[2,3] y) {
  y = Loop (LIMIT, "", x) <body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
    d = Identity (c)  t = Add (s, x) }>
}"""


@pytest.mark.parametrize("limit", ["trips", '""'])
def test_a_loop_that_never_ends_is_refused_at_once(limit: str, tmp_path: Path) -> None:
    model = model_of(ENDLESS.replace("LIMIT", limit))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(2**62), "trips"))
    began_s = time.process_time()
    assert _code(model, tmp_path) == "E_MODEL_FILE"
    assert time.process_time() - began_s < 10


@pytest.mark.slow_but("numpy")
@pytest.mark.parametrize("library", EVERY)
def test_a_loop_that_data_never_end_ends_at_the_limit(library: LibraryName, tmp_path: Path) -> None:
    """The reference is refused, and what traces a loop, and cannot raise in it, ends with it."""
    if library != "numpy":
        pytest.importorskip(library, reason="`make test` installs it and runs this")
    text = BY_COUNT.replace("float[2,3] x", "float[1,1] x").replace("float[2,3]", "float[1,1]")
    graph = loaded(model_of(text.replace("MatMul (s, w)", "Add (s, x)")), tmp_path)
    inputs = {"x": np.ones((1, 1), np.float32), "n": np.array(2**30)}
    if library in ("numpy", "torch"):
        with pytest.raises(FairlapError) as refused:
            answers(graph, library, inputs)
        assert refused.value.code == "E_MODEL_FILE"
    else:
        assert answers(graph, library, inputs)["y"].item() == 1 + MOST_TRIPS


NESTED = """y = Loop (trips, "", INPUT) <body = bDEPTH (int64 iDEPTH, bool cDEPTH, float[2,3] sDEPTH)
  => (bool dDEPTH, float[2,3] tDEPTH) { dDEPTH = Identity (cDEPTH)  INNER }>"""


def test_loops_inside_of_loops_take_no_more_time_than_the_limit_of_copies_allows(tmp_path: Path) -> None:
    """Put in place, sixty trips of sixty of sixty of sixty are 13 million nodes."""
    inner = "t3 = Add (s3, x)"
    for depth in reversed(range(4)):
        outside = "x" if depth == 0 else f"s{depth - 1}"
        result = "y" if depth == 0 else f"t{depth - 1}"
        text = NESTED.replace("INPUT", outside).replace("DEPTH", str(depth)).replace("INNER", inner)
        inner = text.replace("y = Loop", f"{result} = Loop", 1)
    model = model_of(f"g (float[2,3] x) => (float[2,3] y) <int64 trips = {{60}}> {{ {inner} }}")
    began_s = time.process_time()
    graph = loaded(model, tmp_path)
    assert time.process_time() - began_s < 60
    assert sum(len(each.nodes) for each in graph.graphs()) < 2**14


REFUSED = {
    "results by trips that data decide": BY_COUNT.replace("(float[2,3] y)", "(float[2,3] y, float[n,2,3] all)")
    .replace("y = Loop", "y, all = Loop")
    .replace("float[2,3] t)", "float[2,3] t, float[2,3] u)")
    .replace("t = MatMul (s, w)", "t = MatMul (s, w)  u = Neg (t)"),
    "states that grow by trips that data decide": BY_COUNT.replace("MatMul (s, w)", "Concat <axis = 0> (s, s)"),
    "an operator that is missing": BY_COUNT.replace("MatMul (s, w)", "NonZero (s)"),
    "branches of several sizes": """g (float[2,3] x, bool c) => (float[n,3] y) { y = If (c) <
      then_branch = a () => (float[2,3] r) { r = Neg (x) },
      else_branch = b () => (float[4,3] r) { r = Concat <axis = 0> (x, x) }> }""",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_has_no_size_before_a_call_is_refused(why: str, tmp_path: Path) -> None:
    assert _code(model_of(REFUSED[why]), tmp_path) == "E_MODEL_OPERATOR"


@pytest.mark.parametrize(
    "changed",
    [
        ("int64 i, bool c, ", "int64 i, "),
        ("Loop (n", "Loop (x"),
        ("Identity (c)", "Identity (nothing)"),
        ("bool d, float[2,3] t", "float[2,3] t"),
    ],
)
def test_a_loop_that_is_not_valid_is_refused(changed: tuple[str, str], tmp_path: Path) -> None:
    assert _code(model_of(BY_COUNT.replace(*changed)), tmp_path) == "E_MODEL_FILE"


def test_weights_of_bodies_are_held_in_sixteen_bits_where_that_is_asked_for(tmp_path: Path) -> None:
    jax: Any = pytest.importorskip("jax", reason="`make test` installs it and runs this")
    case = CASES["Scan"]
    graph = loaded(model_of(case.text), tmp_path)
    model = build(graph, "jax", floats="bfloat16")
    weights = {name: each.astype("bfloat16") for name, each in model.prepare(graph.weights).items()}
    given = {name: jax.numpy.asarray(each, "bfloat16") for name, each in case.inputs.items()}
    found = jax.jit(model)(weights, given)
    for output, right in case.by_hand(case.inputs).items():
        assert found[output].dtype == "bfloat16"
        np.testing.assert_allclose(np.asarray(found[output], np.float64), right, rtol=0.05, atol=0.05)


def _code(model: Any, folder: Path) -> str:
    with pytest.raises(FairlapError) as refused:
        loaded(model, folder)
    assert "\n" not in str(refused.value)
    return refused.value.code
